"""Rule builder: actions, random events and endings of a specification.

Every action has a gain and a price; its summary lists both in symbols, so that it reads in any language.
Most events have a condition on an earlier action or omission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import Chance, Role
from peripety.author.spec_builder.quantities import (
    GaugeMove,
    LabelledCondition,
    all_of,
    assign_identifiers,
    is_beneficial,
    read_variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.author.blueprint import Action, Event, Trigger
    from peripety.author.spec_builder.quantities import SizedBlueprint, StateGauge


_AMOUNT = "amount"
_MAX_EFFORT = 3
_DELAY = 3
_HIGH_WARD_SHARE = 0.5


def build_actions(world: SizedBlueprint) -> list[dict[str, Any]]:
    """Return the actions of a world, as the specification writes them."""
    return [_build_action(world, action, world.actions[action.name]) for action in world.blueprint.actions]


def _build_action(world: SizedBlueprint, action: Action, id_: str) -> dict[str, Any]:
    moves = world.to_moves(action.flows)
    if action.is_scaled:
        return _build_scaled_action(world, action, id_, moves)
    now = [move for move in moves if not (action.is_delayed and move.is_gain)]
    later = [move for move in moves if action.is_delayed and move.is_gain]
    mark = world.use_counters.get(action.name)
    effects = [move.effect() for move in now]
    if mark:
        effects.append(GaugeMove(mark, 1).effect())
    if later and mark:
        told = {"op": "addlog", "message": world.format_phrase("ready", later[0].gauge.term)}
        due = [*(move.effect() for move in later), GaugeMove(mark, -1).effect(), told]
        effects.append({"op": "schedule", "id": id_, "after": _DELAY, "effects": due})
    shown = _summarize_moves(now) + (f"; \u29d7{_DELAY} {_summarize_moves(later)}" if later else "")
    return {
        "id": id_,
        "name": action.name,
        "description": shown,
        "params": {},
        "preconditions": all_of(*_preconditions(moves), *_unused_conditions(mark)).logic,
        "effects": effects,
    }


def _build_scaled_action(
    world: SizedBlueprint,
    action: Action,
    id_: str,
    moves: Sequence[GaugeMove],
) -> dict[str, Any]:
    """Return an action whose amount is a parameter; it has more effect while the first ward is high."""
    amount = read_variable(f"params.{_AMOUNT}")
    bonus = [_effort_bonus(ward) for ward in world.gauges_of_role(Role.WARD)[:1]]
    derives, derived, conditions = {}, [], []
    for place, move in enumerate(moves):
        gauge, step = move.gauge, move.gauge.to_amount(abs(move.steps))
        gives = move.is_gain
        name = f"{'gain' if gives else 'cost'}_{place}"
        effort = {"+": [amount, *bonus]} if gives and bonus else amount
        derives[name] = {"*": [effort, step]}
        most = (_MAX_EFFORT + len(bonus if gives else ())) * step
        derived.append(GaugeMove(gauge, move.steps, name, f"{step}\u2026{most}"))
        if gives and gauge.role is not Role.GOAL:
            conditions.append(gauge.room_condition(most))
        elif not gives and gauge.role in (Role.SUPPLY, Role.WARD):
            conditions.append(
                LabelledCondition({">": [read_variable(gauge.path), {"*": [amount, step]}]}, ""),
            )
    return {
        "id": id_,
        "name": action.name,
        "description": _summarize_moves(derived),
        "params": {_AMOUNT: {"type": "integer", "minimum": 1, "maximum": _MAX_EFFORT}},
        "preconditions": all_of(*conditions).logic,
        "derives": derives,
        "effects": [move.effect() for move in derived],
    }


def _effort_bonus(ward: StateGauge) -> dict[str, Any]:
    return {"if": [ward.compare_with(">=", ward.value_at(_HIGH_WARD_SHARE)).logic, 1, 0]}


def _preconditions(moves: Iterable[GaugeMove]) -> Iterator[LabelledCondition]:
    """Yield the preconditions: the price is affordable, and the gain has room."""
    for move in moves:
        gauge, amount = move.gauge, move.gauge.to_amount(abs(move.steps))
        if move.is_gain and gauge.role is not Role.GOAL:
            yield gauge.room_condition(amount)
        elif move.steps < 0:
            # The last unit cannot be spent. A hidden quantity is not a loss condition, so it may be used up.
            yield gauge.compare_with(">" if gauge.is_public else ">=", amount)


def _unused_conditions(mark: StateGauge | None) -> list[LabelledCondition]:
    return [mark.compare_with("<", 1)] if mark else []


def _summarize_moves(moves: Iterable[GaugeMove]) -> str:
    """Return the changes of public quantities, as one line of symbols."""
    return ", ".join(move.label for move in moves if move.gauge.is_public)


LATE_PHRASE = "late"
"""The key of the phrase for the deadline ending."""

_ENDS = {Role.SUPPLY: "gone", Role.WARD: "fallen", Role.THREAT: "flood"}


@dataclass(frozen=True, slots=True)
class EndingCondition:
    """Condition that ends a run.

    Attributes:
        phrase_key: the key of its phrase.
        term: the term that its phrase is about.
        quantity: the quantity it is about.
        when: the condition.
    """

    phrase_key: str
    term: str
    quantity: str
    when: LabelledCondition


def find_loss_conditions(world: SizedBlueprint) -> Iterator[EndingCondition]:
    """Yield the loss conditions: one for each public quantity, and one for the deadline."""
    for gauge in world.gauges_of_role(*_ENDS):
        operator = ">=" if gauge.role is Role.THREAT else "<="
        yield EndingCondition(
            _ENDS[gauge.role],
            gauge.term,
            gauge.name,
            gauge.compare_with(operator, gauge.scale.end),
        )
    turn = world.time_scale.due
    if turn:
        goal = world.gauges_of_role(Role.GOAL)[0]
        past = LabelledCondition({">=": [read_variable("turn"), turn]}, f"\u29d7{turn}")
        late = all_of(goal.compare_with("<", goal.value_at(world.due)), past)
        yield EndingCondition(LATE_PHRASE, goal.term, goal.name, late)


def find_win_conditions(world: SizedBlueprint) -> Iterator[EndingCondition]:
    """Yield the win condition: enough of every goal."""
    goals = world.gauges_of_role(Role.GOAL)
    enough = all_of(*(goal.compare_with(">=", goal.scale.end) for goal in goals))
    yield EndingCondition("reached", goals[0].term, goals[0].name, enough)


def build_endings(
    world: SizedBlueprint,
    endings: Iterable[EndingCondition],
    used_ids: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Return endings as the specification writes them, with unique identifiers."""
    by_name = {f"{ending.phrase_key} {ending.quantity}": ending for ending in endings}
    ids = assign_identifiers("c", by_name, [*world.ids, *used_ids])
    return [
        {
            "id": ids[name],
            "when": ending.when.logic,
            "message": world.format_phrase(ending.phrase_key, ending.term),
        }
        for name, ending in by_name.items()
    ]


def describe_stakes(world: SizedBlueprint) -> str:
    """Return the win and loss conditions as one line of symbols."""
    won = [f"\u2713 {ending.when.label}" for ending in find_win_conditions(world)]
    lost = [f"\u2717 {ending.when.label}" for ending in find_loss_conditions(world)]
    return "; ".join([*won, *lost])


_WEIGHTS = {Chance.RARE: 0.07, Chance.OCCASIONAL: 0.14, Chance.FREQUENT: 0.25}
_MIN_WEIGHT, _MAX_WEIGHT = 0.05, 0.3
_LASTING_TURNS = 2
_HIGH, _LOW = 0.4, 0.4


def build_events(world: SizedBlueprint) -> list[dict[str, Any]]:
    """Return the events of a world, as the specification writes them."""
    return [_build_event(world, event, world.events[event.name]) for event in world.blueprint.events]


def _build_event(world: SizedBlueprint, event: Event, id_: str) -> dict[str, Any]:
    moves = world.to_moves(event.flows)
    effects = [move.effect() for move in moves]
    if any(not move.gauge.is_public for move in moves):
        # Some effects are hidden, so the event itself is announced.
        effects.append({"op": "addlog", "message": event.name})
    lasting = {"duration": world.time_scale.format_duration(_LASTING_TURNS)} if event.lasts else {}
    return {
        "id": id_,
        "name": event.name,
        "weight": _event_weight(world, event.chance, moves),
        "when": all_of(*_trigger_conditions(world, event.when), *_room_conditions(moves)).logic,
        "effects": effects,
        **lasting,
    }


def _event_weight(world: SizedBlueprint, chance: Chance, moves: Iterable[GaugeMove]) -> float:
    """Return the weight of an event: its chance, scaled by the calibrated pressure of the harmed quantity."""
    harmed = (
        world.pressures[move.gauge.name]
        for move in moves
        if move.gauge.name in world.pressures and not is_beneficial(move.gauge.role, rises=move.steps > 0)
    )
    return round(min(max(_WEIGHTS[chance] * next(harmed, 1.0), _MIN_WEIGHT), _MAX_WEIGHT), 3)


def _trigger_conditions(world: SizedBlueprint, trigger: Trigger | None) -> Iterator[LabelledCondition]:
    if trigger:
        gauge = world.gauges[trigger.quantity]
        operator, share = (">=", _HIGH) if trigger.is_high else ("<=", _LOW)
        yield gauge.compare_with(operator, gauge.value_at(share))


def _room_conditions(moves: Iterable[GaugeMove]) -> Iterator[LabelledCondition]:
    """Yield the conditions that leave room for the gains."""
    for move in moves:
        if move.is_gain and move.gauge.role is not Role.GOAL:
            yield move.gauge.room_condition(move.gauge.to_amount(abs(move.steps)))
