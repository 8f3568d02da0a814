"""Actions of a specification.

Every action has a gain and a price. Its summary lists both in symbols, so that it reads in any language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.assembling.conditions import Condition, all_of, variable
from peripety.authoring.assembling.gauges import Move
from peripety.authoring.blueprint import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.authoring.assembling.gauges import Gauge
    from peripety.authoring.assembling.world import World
    from peripety.authoring.blueprint import Action

__all__ = ["actions"]

_AMOUNT = "amount"
_MOST_EFFORT = 3
_DELAY = 3
_GOOD_SHAPE = 0.5


def actions(world: World) -> list[dict[str, Any]]:
    """Return the actions of a world, as the specification writes them."""
    return [_action(world, action, world.actions[action.name]) for action in world.blueprint.actions]


def _action(world: World, action: Action, id_: str) -> dict[str, Any]:
    moves = world.moves(action.flows)
    if action.is_scaled:
        return _scaled(world, action, id_, moves)
    now = [move for move in moves if not (action.is_delayed and move.gives)]
    later = [move for move in moves if action.is_delayed and move.gives]
    mark = world.marks.get(action.name)
    effects = [move.effect() for move in now]
    if mark:
        effects.append(Move(mark, 1).effect())
    if later and mark:
        told = {"op": "addlog", "message": world.say("ready", later[0].gauge.term)}
        due = [*(move.effect() for move in later), Move(mark, -1).effect(), told]
        effects.append({"op": "schedule", "id": id_, "after": _DELAY, "effects": due})
    shown = _summary(now) + (f"; \u29d7{_DELAY} {_summary(later)}" if later else "")
    return {
        "id": id_,
        "name": action.name,
        "description": shown,
        "params": {},
        "preconditions": all_of(*_allowed(moves), *_unmarked(mark)).logic,
        "effects": effects,
    }


def _scaled(world: World, action: Action, id_: str, moves: Sequence[Move]) -> dict[str, Any]:
    """Return an action whose amount is a parameter; it has more effect while the first ward is high."""
    amount = variable(f"params.{_AMOUNT}")
    bonus = [_bonus(ward) for ward in world.of_role(Role.WARD)[:1]]
    derives, derived, conditions = {}, [], []
    for place, move in enumerate(moves):
        gauge, step = move.gauge, move.gauge.amount(abs(move.steps))
        gives = move.gives
        name = f"{'gain' if gives else 'cost'}_{place}"
        effort = {"+": [amount, *bonus]} if gives and bonus else amount
        derives[name] = {"*": [effort, step]}
        most = (_MOST_EFFORT + len(bonus if gives else ())) * step
        derived.append(Move(gauge, move.steps, name, f"{step}\u2026{most}"))
        if gives and gauge.role is not Role.GOAL:
            conditions.append(gauge.has_room(most))
        elif not gives and gauge.role in (Role.SUPPLY, Role.WARD):
            conditions.append(Condition({">": [variable(gauge.path), {"*": [amount, step]}]}, ""))
    return {
        "id": id_,
        "name": action.name,
        "description": _summary(derived),
        "params": {_AMOUNT: {"type": "integer", "minimum": 1, "maximum": _MOST_EFFORT}},
        "preconditions": all_of(*conditions).logic,
        "derives": derives,
        "effects": [move.effect() for move in derived],
    }


def _bonus(ward: Gauge) -> dict[str, Any]:
    return {"if": [ward.compared(">=", ward.part(_GOOD_SHAPE)).logic, 1, 0]}


def _allowed(moves: Iterable[Move]) -> Iterator[Condition]:
    """Yield the preconditions: the price is affordable, and the gain has room."""
    for move in moves:
        gauge, amount = move.gauge, move.gauge.amount(abs(move.steps))
        if move.gives and gauge.role is not Role.GOAL:
            yield gauge.has_room(amount)
        elif move.steps < 0:
            # The last unit cannot be spent. A hidden quantity is not a loss condition, so it may be used up.
            yield gauge.compared(">" if gauge.is_public else ">=", amount)


def _unmarked(mark: Gauge | None) -> list[Condition]:
    return [mark.compared("<", 1)] if mark else []


def _summary(moves: Iterable[Move]) -> str:
    """Return the changes of public quantities, as one line of symbols."""
    return ", ".join(move.shown for move in moves if move.gauge.is_public)
