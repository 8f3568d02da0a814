"""Defaults for an incomplete blueprint: missing quantities, actions and events.

Their names are connecting text around the terms of the blueprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.authoring.assembling.gauges import helps
from peripety.authoring.blueprint import Action, Chance, Event, Flow, Quantity, Role, Size, Trigger
from peripety.authoring.reading.names import fresh

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["added_actions", "added_events", "added_quantities"]

_USES = {Role.SUPPLY: "stock", Role.WARD: "ward", Role.THREAT: "threat", Role.GOAL: "goal"}
_RELIEVED_BY = {Role.SUPPLY: "trade", Role.WARD: "protect", Role.THREAT: "contain", Role.GOAL: "work"}
_HARMED_BY = {Role.SUPPLY: "short", Role.WARD: "strain", Role.THREAT: "rise"}
_LETTERS = "ABCD"


def added_quantities(given: Sequence[Quantity], phrases: Mapping[str, str]) -> Iterator[Quantity]:
    """Yield one quantity for each role that no public quantity has."""
    seen = [one for one in given if not one.is_unseen]
    played = {one.role for one in seen}
    words = [_term(one) for one in seen] or list(_LETTERS)
    taken = [one.name for one in given]
    for place, role in enumerate(role for role in Role if role not in played):
        term = words[place % len(words)]
        taken.append(fresh(phrases[_USES[role]].format(a=term), taken))
        yield Quantity(taken[-1], role, term=term)


def added_actions(
    quantities: Sequence[Quantity],
    given: Sequence[Action],
    phrases: Mapping[str, str],
) -> Iterator[Action]:
    """Yield an action for each quantity without a helpful one, and one to win the trust of each holder."""
    seen = [one for one in quantities if not one.is_unseen]
    by_role = {role: [one for one in seen if one.role is role] for role in Role}
    supply, ward, threat = (by_role[role][0] for role in (Role.SUPPLY, Role.WARD, Role.THREAT))
    unseen = {one.name for one in quantities if one.is_unseen}
    # An action that can be done once, or that needs a held-back quantity, is not a reliable source.
    reliable = [
        action
        for action in given
        if not action.is_final and all(flow.rises or flow.quantity not in unseen for flow in action.flows)
    ]
    helped = {flow.quantity for action in reliable for flow in action.flows if _is_good(flow, quantities)}
    taken = [action.name for action in given]

    def name(use: str, first: Quantity | str, second: Quantity) -> str:
        term = first if isinstance(first, str) else _term(first)
        taken.append(fresh(phrases[use].format(a=term, b=_term(second)), taken))
        return taken[-1]

    for one in seen:
        if one.name in helped:
            continue
        gain = Flow(one.name, rises=one.role is not Role.THREAT, size=Size.LARGE)
        if one.role is Role.SUPPLY:
            prices = (Flow(ward.name, rises=False), Flow(threat.name, rises=True, size=Size.SMALL))
            yield Action(name("trade", ward, one), (gain, *prices))
        else:
            price = Flow(supply.name, rises=False, size=Size.SMALL)
            yield Action(name(_RELIEVED_BY[one.role], one, one), (gain, price))
    touched = {flow.quantity for action in given for flow in action.flows}
    for one in quantities:
        if one.holder and one.role is not Role.THREAT and one.name not in touched:
            flows = (
                Flow(one.name, rises=False, size=Size.SMALL),
                Flow(supply.name, rises=True),
                Flow(threat.name, rises=True, size=Size.SMALL),
            )
            yield Action(name("listen", one.holder, one), flows)


def added_events(
    quantities: Sequence[Quantity], given: Sequence[Event], phrases: Mapping[str, str]
) -> Iterator[Event]:
    """Yield an event for each quantity that no event harms."""
    threat = next(one for one in quantities if one.role is Role.THREAT and not one.is_unseen)
    harmed = {flow.quantity for event in given for flow in event.flows if not _is_good(flow, quantities)}
    taken = [event.name for event in given]
    for one in quantities:
        if one.is_unseen or one.role is Role.GOAL or one.name in harmed:
            continue
        use = _HARMED_BY[one.role]
        taken.append(fresh(phrases[use].format(a=_term(one)), taken))
        flow = Flow(one.name, rises=one.role is Role.THREAT)
        is_ward = one.role is Role.WARD
        when = Trigger(threat.name, is_high=True) if is_ward else None
        chance = Chance.FREQUENT if one.role is Role.THREAT else Chance.OCCASIONAL
        yield Event(taken[-1], (flow,), chance, when, lasts=is_ward)


def _term(quantity: Quantity) -> str:
    return quantity.term or quantity.name


def _is_good(flow: Flow, quantities: Iterable[Quantity]) -> bool:
    role = next(one.role for one in quantities if one.name == flow.quantity)
    return helps(role, rises=flow.rises)
