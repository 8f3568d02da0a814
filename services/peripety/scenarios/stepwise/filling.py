"""What rules put where a model gave nothing of use: what an action or an event does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.authoring.assembling.gauges import helps
from peripety.authoring.blueprint import Flow, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.authoring.blueprint import Blueprint, Quantity, Role

__all__ = ["fillings"]

_ENOUGH = 4
"""So many actions, or events, of a model's own make a scenario; to fewer of them rules add theirs."""
_RELIEF = 3
"""One in so many events is to the good."""


def fillings(blueprint: Blueprint, composed: Blueprint) -> Iterator[Blueprint]:
    """Ways to fill a blueprint, from the one that leaves most to the model to the one that is safest.

    In each of them every action is worth doing and every event does something. What a model says may still
    make no fair scenario: then rules of the engine's stand beside its own, and at last in their place.

    Args:
        blueprint: as far as a model got.
        composed: what rules make of the same words.
    """
    seen = [one for one in blueprint.quantities if not one.is_unseen]
    roles = {one.name: one.role for one in blueprint.quantities}
    own = replace(
        blueprint,
        quantities=(*blueprint.quantities, *(one for one in composed.quantities if one.is_unseen)),
        actions=tuple(
            replace(action, flows=_worthwhile(action.flows, roles) or _trade(index, seen))
            for index, action in enumerate(blueprint.actions)
        ),
        events=tuple(
            event if event.flows else replace(event, flows=(_turn(index, seen),))
            for index, event in enumerate(blueprint.events)
        ),
    )
    beside = replace(
        own,
        actions=(*own.actions[:_ENOUGH], *composed.actions),
        events=(*own.events[:_ENOUGH], *composed.events),
    )
    yield replace(
        beside,
        actions=own.actions if len(own.actions) >= _ENOUGH else beside.actions,
        events=own.events if len(own.events) >= _ENOUGH else beside.events,
    )
    yield beside
    yield replace(own, actions=composed.actions, events=composed.events)


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
