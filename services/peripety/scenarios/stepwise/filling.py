"""Rule-based defaults for missing effects of actions and events."""

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
"""The number of a model's own actions, or events, that is enough; rules add to fewer of them."""
_RELIEF = 3
"""One in this many default events is helpful."""


def fillings(blueprint: Blueprint, composed: Blueprint) -> Iterator[Blueprint]:
    """Yield completed blueprints, from the one closest to the model's answers to the safest one.

    In each of them every action has a gain and every event has an effect. The model's answers may still
    result in an unfair scenario. Then rule-based parts are added, and in the last blueprint they replace the
    model's.

    Args:
        blueprint: the blueprint from the model's answers.
        composed: the rule-based blueprint of the same words.
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
    """Return the changes; the first one is made a gain if all are losses."""
    if not flows or any(helps(roles[flow.quantity], rises=flow.rises) for flow in flows):
        return tuple(flows)
    first, *others = flows
    return (replace(first, rises=not first.rises), *others)


def _trade(index: int, quantities: Sequence[Quantity]) -> tuple[Flow, Flow]:
    """Return a gain of one quantity and a price in another."""
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
