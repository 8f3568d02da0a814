"""Completion of a blueprint: missing quantities, actions and events are added, unusable ones removed.

A small model may have written the blueprint, so nothing in it is trusted. Names may be invalid or
duplicated, flows may refer to unknown quantities, actions may be free, and risks may be missing. The names
of added parts are connecting text around the terms of the blueprint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.author.blueprint import Action, Chance, Event, Flow, Quantity, Role, Size, Trigger
from peripety.author.spec_builder.quantities import is_beneficial
from peripety.author.text_analysis.terms import NAME_LIMIT, TERM_LIMIT, fit_name, make_unique_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.author.blueprint import Blueprint


_DEFAULT_PHRASES = {Role.SUPPLY: "stock", Role.WARD: "ward", Role.THREAT: "threat", Role.GOAL: "goal"}
_RELIEVED_BY = {Role.SUPPLY: "trade", Role.WARD: "protect", Role.THREAT: "contain", Role.GOAL: "work"}
_HARMED_BY = {Role.SUPPLY: "short", Role.WARD: "strain", Role.THREAT: "rise"}
_LETTERS = "ABCD"


def default_quantities(given: Sequence[Quantity], phrases: Mapping[str, str]) -> Iterator[Quantity]:
    """Yield one quantity for each role that no public quantity has."""
    seen = [one for one in given if not one.is_unseen]
    played = {one.role for one in seen}
    words = [_term(one) for one in seen] or list(_LETTERS)
    taken = [one.name for one in given]
    for place, role in enumerate(role for role in Role if role not in played):
        term = words[place % len(words)]
        taken.append(make_unique_name(phrases[_DEFAULT_PHRASES[role]].format(a=term), taken))
        yield Quantity(taken[-1], role, term=term)


def default_actions(
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
    helped = {
        flow.quantity for action in reliable for flow in action.flows if _is_beneficial_flow(flow, quantities)
    }
    taken = [action.name for action in given]

    def name(use: str, first: Quantity | str, second: Quantity) -> str:
        term = first if isinstance(first, str) else _term(first)
        taken.append(make_unique_name(phrases[use].format(a=term, b=_term(second)), taken))
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


def default_events(
    quantities: Sequence[Quantity],
    given: Sequence[Event],
    phrases: Mapping[str, str],
) -> Iterator[Event]:
    """Yield an event for each quantity that no event harms."""
    threat = next(one for one in quantities if one.role is Role.THREAT and not one.is_unseen)
    harmed = {
        flow.quantity for event in given for flow in event.flows if not _is_beneficial_flow(flow, quantities)
    }
    taken = [event.name for event in given]
    for one in quantities:
        if one.is_unseen or one.role is Role.GOAL or one.name in harmed:
            continue
        use = _HARMED_BY[one.role]
        taken.append(make_unique_name(phrases[use].format(a=_term(one)), taken))
        flow = Flow(one.name, rises=one.role is Role.THREAT)
        is_ward = one.role is Role.WARD
        when = Trigger(threat.name, is_high=True) if is_ward else None
        chance = Chance.FREQUENT if one.role is Role.THREAT else Chance.OCCASIONAL
        yield Event(taken[-1], (flow,), chance, when, lasts=is_ward)


def _term(quantity: Quantity) -> str:
    return quantity.term or quantity.name


def _is_beneficial_flow(flow: Flow, quantities: Iterable[Quantity]) -> bool:
    role = next(one.role for one in quantities if one.name == flow.quantity)
    return is_beneficial(role, rises=flow.rises)


_MAX_PEOPLE = 4
_MAX_QUANTITIES = 16
_MAX_PER_ROLE = {Role.SUPPLY: 3, Role.WARD: 3, Role.THREAT: 3, Role.GOAL: 2}
_MAX_ACTIONS, _MAX_EVENTS = 14, 14
_MAX_DECAYING = 2
_MAX_FLOWS = 4
_MAX_GAINS, _MAX_PRICES = 2, 2
_TITLE_LIMIT = 200


def complete_blueprint(blueprint: Blueprint) -> Blueprint:
    """Return the blueprint with every required part, valid names and a price on every action."""
    people = _rename_people(blueprint.people)
    kept, renamed = _clean_quantities(blueprint.quantities, people)
    quantities = _limit_decay((*kept, *default_quantities(kept, blueprint.phrases)))
    known = {quantity.name: quantity for quantity in quantities}
    actions = [*_clean_actions(blueprint.actions, known, renamed)]
    actions += default_actions(quantities, actions, blueprint.phrases)
    events = [*_clean_events(blueprint.events, known, renamed)]
    events += default_events(quantities, events, blueprint.phrases)
    return replace(
        blueprint,
        title=_clean_title(blueprint, quantities[0]),
        quantities=quantities,
        actions=tuple(_choose_scaled_action(actions)),
        events=tuple(events),
        people=tuple(people.values()),
        player=fit_name(blueprint.player, TERM_LIMIT),
    )


def _clean_title(blueprint: Blueprint, first: Quantity) -> str:
    return " ".join(blueprint.title.split())[:_TITLE_LIMIT] or first.term or first.name


def _rename_people(names: Iterable[str]) -> dict[str, str]:
    """Map the given name of each person to a valid unique name."""
    people: dict[str, str] = {}
    for name in names:
        if (person := fit_name(name, TERM_LIMIT)) and len(people) < _MAX_PEOPLE and name not in people:
            people[name] = make_unique_name(person, people.values())
    return people


def _clean_quantities(
    given: Sequence[Quantity],
    people: Mapping[str, str],
) -> tuple[tuple[Quantity, ...], dict[str, str]]:
    """Return the usable quantities, and their names by the given names."""
    kept: list[Quantity] = []
    renamed: dict[str, str] = {}
    for one in given[:_MAX_QUANTITIES]:
        holder = people.get(one.holder, "") if one.role is not Role.GOAL else ""
        hidden = one.is_hidden and one.role is not Role.GOAL
        fitting = fit_name(one.name, NAME_LIMIT)
        seen = sum(other.role is one.role and not other.is_unseen for other in kept)
        if not fitting or (seen >= _MAX_PER_ROLE[one.role] and not (holder or hidden)):
            continue
        name = make_unique_name(fitting, (other.name for other in kept))
        amount = one.amount if one.amount and one.amount > 0 else None
        renamed.setdefault(one.name, name)
        kept.append(
            replace(
                one,
                name=name,
                term=fit_name(one.term, NAME_LIMIT),
                holder=holder,
                is_hidden=hidden,
                amount=amount,
            ),
        )
    return tuple(kept), renamed


def _limit_decay(quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities with decay limited to a few; hidden quantities and goals do not decay."""
    can = [one.name for one in quantities if not one.is_unseen and one.role is not Role.GOAL]
    does = [one.name for one in quantities if one.fades and one.name in can][:_MAX_DECAYING]
    supplies = [one.name for one in quantities if one.role is Role.SUPPLY and one.name in can]
    fading = does or supplies[:1]
    return tuple(replace(one, fades=one.name in fading) for one in quantities)


def _clean_flows(
    given: Iterable[Flow],
    known: Mapping[str, Quantity],
    renamed: Mapping[str, str],
) -> tuple[Flow, ...]:
    """Return one flow for each known quantity; progress towards a goal is never undone."""
    by_name: dict[str, Flow] = {}
    for flow in given:
        name = renamed.get(flow.quantity, flow.quantity)
        if name in known and (flow.rises or known[name].role is not Role.GOAL):
            # There is little of a quantity that is not public, so it moves in small steps.
            size = Size.SMALL if known[name].is_unseen and flow.size is Size.LARGE else flow.size
            by_name.setdefault(name, replace(flow, quantity=name, size=size))
    return tuple(by_name.values())[:_MAX_FLOWS]


def _clean_actions(
    given: Iterable[Action],
    known: Mapping[str, Quantity],
    renamed: Mapping[str, str],
) -> Iterator[Action]:
    taken: list[str] = []
    for action in given:
        flows = _balance_flows(_clean_flows(action.flows, known, renamed), known)
        name = fit_name(action.name, NAME_LIMIT)
        if name and flows and len(taken) < _MAX_ACTIONS:
            taken.append(make_unique_name(name, taken))
            yield replace(action, name=taken[-1], flows=flows)


def _balance_flows(flows: tuple[Flow, ...], known: Mapping[str, Quantity]) -> tuple[Flow, ...]:
    """Return flows with a balanced gain and price; none if a price is impossible."""
    unseen = [flow for flow in flows if known[flow.quantity].is_unseen]
    seen = [flow for flow in flows if flow not in unseen]
    gains = [flow for flow in seen if _is_gain(flow, known)][:_MAX_GAINS]
    prices = [flow for flow in seen if not _is_gain(flow, known)][:_MAX_PRICES]
    if not gains:
        return ()
    largest = max(flow.size for flow in gains)
    if not prices:
        payable = _find_payable(known, {flow.quantity for flow in gains})
        prices = [Flow(name, rises=False, size=Size(len(gains))) for name in payable[:1]]
    fair = (replace(price, size=min(price.size, largest)) for price in prices)
    return (*gains, *fair, *unseen) if prices else ()


def _find_payable(known: Mapping[str, Quantity], used: Collection[str]) -> list[str]:
    """Return the quantities that can pay a price: supplies first, then wards."""
    return [
        name
        for role in (Role.SUPPLY, Role.WARD)
        for name, one in known.items()
        if one.role is role and not one.is_unseen and name not in used
    ]


def _is_gain(flow: Flow, known: Mapping[str, Quantity]) -> bool:
    return is_beneficial(known[flow.quantity].role, rises=flow.rises)


def _clean_events(
    given: Iterable[Event],
    known: Mapping[str, Quantity],
    renamed: Mapping[str, str],
) -> Iterator[Event]:
    taken: list[str] = []
    for event in given:
        flows = _clean_flows(event.flows, known, renamed)
        name = fit_name(event.name, NAME_LIMIT)
        when = event.when
        if when:
            waited = renamed.get(when.quantity, when.quantity)
            when = replace(when, quantity=waited) if waited in known else None
        if name and flows and len(taken) < _MAX_EVENTS:
            taken.append(make_unique_name(name, taken))
            yield replace(event, name=taken[-1], flows=flows, when=when)


def _choose_scaled_action(actions: Sequence[Action]) -> Iterator[Action]:
    """Yield the actions, one of them with an amount that the player chooses."""
    has_scaled = any(action.is_scaled for action in actions)
    for place, action in enumerate(actions):
        # Delayed and one-time actions cannot be scaled.
        by_degrees = (action.is_scaled or (place == 0 and not has_scaled)) and not (
            action.is_delayed or action.is_final
        )
        flows = tuple(replace(flow, size=Size.SMALL) for flow in action.flows) if by_degrees else action.flows
        yield replace(action, is_scaled=by_degrees, flows=flows)
