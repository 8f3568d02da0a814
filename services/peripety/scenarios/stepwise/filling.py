"""What rules put where a model gave nothing of use: what an action or an event does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.authoring.assembling.gauges import helps
from peripety.authoring.blueprint import Flow, Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.authoring.blueprint import Blueprint, Quantity, Role

__all__ = ["filled"]

_RELIEF = 3
"""One in so many events is to the good."""


def filled(blueprint: Blueprint) -> Blueprint:
    """The blueprint in which every action is worth doing and every event does something."""
    open_to_all = [each for each in blueprint.quantities if not each.is_unseen]
    roles = {each.name: each.role for each in blueprint.quantities}
    return replace(
        blueprint,
        actions=tuple(
            replace(action, flows=_worthwhile(action.flows, roles) or _trade(index, open_to_all))
            for index, action in enumerate(blueprint.actions)
        ),
        events=tuple(
            event if event.flows else replace(event, flows=(_turn(index, open_to_all),))
            for index, event in enumerate(blueprint.events)
        ),
    )


def _worthwhile(flows: Sequence[Flow], roles: Mapping[str, Role]) -> tuple[Flow, ...]:
    """The same changes, the first one for the better where none of them is."""
    if not flows or any(helps(roles[flow.quantity], rises=flow.rises) for flow in flows):
        return tuple(flows)
    first, *others = flows
    return (replace(first, rises=not first.rises), *others)


def _trade(index: int, quantities: Sequence[Quantity]) -> tuple[Flow, Flow]:
    """Something gained, and something of another quantity lost for it."""
    gained, lost = quantities[-1 - index % len(quantities)], quantities[index % len(quantities)]
    if gained is lost:
        lost = quantities[(index + 1) % len(quantities)]
    return _for_better(gained), _for_worse(lost)


def _turn(index: int, quantities: Sequence[Quantity]) -> Flow:
    struck = quantities[index % len(quantities)]
    return _for_better(struck) if index % _RELIEF == _RELIEF - 1 else _for_worse(struck)


def _for_better(quantity: Quantity) -> Flow:
    return Flow(quantity.name, helps(quantity.role, rises=True), Size.MEDIUM)


def _for_worse(quantity: Quantity) -> Flow:
    return Flow(quantity.name, helps(quantity.role, rises=False), Size.SMALL)
