"""Completion of a blueprint: missing parts are added, unusable parts are removed.

A small model may have written the blueprint, so nothing in it is trusted. Names may be invalid or duplicated,
flows may refer to unknown quantities, actions may be free, and risks may be missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.authoring.assembling.adding import added_actions, added_events, added_quantities
from peripety.authoring.assembling.gauges import helps
from peripety.authoring.blueprint import Action, Event, Flow, Quantity, Role, Size
from peripety.authoring.reading.names import NAME_LIMIT, TERM_LIMIT, fit, fresh

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.authoring.blueprint import Blueprint

__all__ = ["whole"]

_MOST_PEOPLE = 4
_MOST_QUANTITIES = 16
_MOST_OF_A_ROLE = {Role.SUPPLY: 3, Role.WARD: 3, Role.THREAT: 3, Role.GOAL: 2}
_MOST_ACTIONS, _MOST_EVENTS = 14, 14
_MOST_FADING = 2
_MOST_FLOWS = 4
_MOST_GAINS, _MOST_PRICES = 2, 2
_TITLE_LIMIT = 200


def whole(blueprint: Blueprint) -> Blueprint:
    """Return the blueprint with every required part, valid names and a price on every action."""
    people = _people(blueprint.people)
    kept, renamed = _quantities(blueprint.quantities, people)
    quantities = _fading((*kept, *added_quantities(kept, blueprint.phrases)))
    known = {quantity.name: quantity for quantity in quantities}
    actions = [*_actions(blueprint.actions, known, renamed)]
    actions += added_actions(quantities, actions, blueprint.phrases)
    events = [*_events(blueprint.events, known, renamed)]
    events += added_events(quantities, events, blueprint.phrases)
    return replace(
        blueprint,
        title=_title(blueprint, quantities[0]),
        quantities=quantities,
        actions=tuple(_scaled(actions)),
        events=tuple(events),
        people=tuple(people.values()),
        player=fit(blueprint.player, TERM_LIMIT),
    )


def _title(blueprint: Blueprint, first: Quantity) -> str:
    return " ".join(blueprint.title.split())[:_TITLE_LIMIT] or first.term or first.name


def _people(names: Iterable[str]) -> dict[str, str]:
    """Map the given name of each person to a valid unique name."""
    people: dict[str, str] = {}
    for name in names:
        if (person := fit(name, TERM_LIMIT)) and len(people) < _MOST_PEOPLE and name not in people:
            people[name] = fresh(person, people.values())
    return people


def _quantities(
    given: Sequence[Quantity], people: Mapping[str, str]
) -> tuple[tuple[Quantity, ...], dict[str, str]]:
    """Return the usable quantities, and their names by the given names."""
    kept: list[Quantity] = []
    renamed: dict[str, str] = {}
    for one in given[:_MOST_QUANTITIES]:
        holder = people.get(one.holder, "") if one.role is not Role.GOAL else ""
        hidden = one.is_hidden and one.role is not Role.GOAL
        fitting = fit(one.name, NAME_LIMIT)
        seen = sum(other.role is one.role and not other.is_unseen for other in kept)
        if not fitting or (seen >= _MOST_OF_A_ROLE[one.role] and not (holder or hidden)):
            continue
        name = fresh(fitting, (other.name for other in kept))
        amount = one.amount if one.amount and one.amount > 0 else None
        renamed.setdefault(one.name, name)
        kept.append(
            replace(
                one, name=name, term=fit(one.term, NAME_LIMIT), holder=holder, is_hidden=hidden, amount=amount
            )
        )
    return tuple(kept), renamed


def _fading(quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities with decay limited to a few; hidden quantities and goals do not decay."""
    can = [one.name for one in quantities if not one.is_unseen and one.role is not Role.GOAL]
    does = [one.name for one in quantities if one.fades and one.name in can][:_MOST_FADING]
    supplies = [one.name for one in quantities if one.role is Role.SUPPLY and one.name in can]
    fading = does or supplies[:1]
    return tuple(replace(one, fades=one.name in fading) for one in quantities)


def _flows(
    given: Iterable[Flow], known: Mapping[str, Quantity], renamed: Mapping[str, str]
) -> tuple[Flow, ...]:
    """Return one flow for each known quantity; progress towards a goal is never undone."""
    by_name: dict[str, Flow] = {}
    for flow in given:
        name = renamed.get(flow.quantity, flow.quantity)
        if name in known and (flow.rises or known[name].role is not Role.GOAL):
            # There is little of a quantity that is not public, so it moves in small steps.
            size = Size.SMALL if known[name].is_unseen and flow.size is Size.LARGE else flow.size
            by_name.setdefault(name, replace(flow, quantity=name, size=size))
    return tuple(by_name.values())[:_MOST_FLOWS]


def _actions(
    given: Iterable[Action], known: Mapping[str, Quantity], renamed: Mapping[str, str]
) -> Iterator[Action]:
    taken: list[str] = []
    for action in given:
        flows = _priced(_flows(action.flows, known, renamed), known)
        name = fit(action.name, NAME_LIMIT)
        if name and flows and len(taken) < _MOST_ACTIONS:
            taken.append(fresh(name, taken))
            yield replace(action, name=taken[-1], flows=flows)


def _priced(flows: tuple[Flow, ...], known: Mapping[str, Quantity]) -> tuple[Flow, ...]:
    """Return flows with a balanced gain and price; none if a price is impossible."""
    unseen = [flow for flow in flows if known[flow.quantity].is_unseen]
    seen = [flow for flow in flows if flow not in unseen]
    gains = [flow for flow in seen if _is_good(flow, known)][:_MOST_GAINS]
    prices = [flow for flow in seen if not _is_good(flow, known)][:_MOST_PRICES]
    if not gains:
        return ()
    largest = max(flow.size for flow in gains)
    if not prices:
        payable = _payable(known, {flow.quantity for flow in gains})
        prices = [Flow(name, rises=False, size=Size(len(gains))) for name in payable[:1]]
    fair = (replace(price, size=min(price.size, largest)) for price in prices)
    return (*gains, *fair, *unseen) if prices else ()


def _payable(known: Mapping[str, Quantity], used: Collection[str]) -> list[str]:
    """Return the quantities that can pay a price: supplies first, then wards."""
    return [
        name
        for role in (Role.SUPPLY, Role.WARD)
        for name, one in known.items()
        if one.role is role and not one.is_unseen and name not in used
    ]


def _is_good(flow: Flow, known: Mapping[str, Quantity]) -> bool:
    return helps(known[flow.quantity].role, rises=flow.rises)


def _events(
    given: Iterable[Event], known: Mapping[str, Quantity], renamed: Mapping[str, str]
) -> Iterator[Event]:
    taken: list[str] = []
    for event in given:
        flows = _flows(event.flows, known, renamed)
        name = fit(event.name, NAME_LIMIT)
        when = event.when
        if when:
            waited = renamed.get(when.quantity, when.quantity)
            when = replace(when, quantity=waited) if waited in known else None
        if name and flows and len(taken) < _MOST_EVENTS:
            taken.append(fresh(name, taken))
            yield replace(event, name=taken[-1], flows=flows, when=when)


def _scaled(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield the actions, one of them with an amount that the player chooses."""
    has_scaled = any(action.is_scaled for action in actions)
    for place, action in enumerate(actions):
        # Delayed and one-time actions cannot be scaled.
        by_degrees = (action.is_scaled or (place == 0 and not has_scaled)) and not (
            action.is_delayed or action.is_final
        )
        flows = tuple(replace(flow, size=Size.SMALL) for flow in action.flows) if by_degrees else action.flows
        yield replace(action, is_scaled=by_degrees, flows=flows)
