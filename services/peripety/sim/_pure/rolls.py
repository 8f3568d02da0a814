"""Dice: a twenty-sided die against a difficulty; each kind and target has its own random stream."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.rng import choose, draw, stream_key
from peripety.sim._pure.size import MAX_ROLLS
from peripety.sim._pure.turn import check_ongoing

if TYPE_CHECKING:
    from peripety.sim._pure.state import State

__all__ = ["roll"]

FACES = 20
MAX_DIFFICULTY = 30
_MEMBERS = frozenset({"kind", "target", "difficulty"})
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")


def roll(state: State, request: Any) -> dict[str, Any]:
    """Roll in the current turn: `{kind, target?, difficulty}`.

    Returns:
        A `RollResult`, including its draw.

    Raises:
        CoreError: `ROLL_INVALID`, `RUN_ENDED`, or `STATE_LIMIT` after too many rolls in the turn.
    """
    check_ongoing(state)
    kind, target, difficulty = _read(request)
    if sum(state.rolls.values()) >= MAX_ROLLS:
        raise CoreError("STATE_LIMIT", f"more than {MAX_ROLLS} rolls in one turn")
    stream = f"roll:{kind}:{target or ''}"
    turn, index = state.turn + 1, state.rolls.get(stream, 0)
    value = draw(state.seed, stream_key(stream), turn, index)
    state.rolls = {**state.rolls, stream: index + 1}
    face = choose(value, FACES) + 1
    return {
        "kind": kind,
        "target": target,
        "difficulty": difficulty,
        "roll": float(face),
        "success": face >= difficulty,
        "draw": {
            "stream": stream,
            "turn": float(turn),
            "index": float(index),
            "value": f"{value:016x}",
        },
    }


def _read(request: Any) -> tuple[str, str | None, float]:
    if not isinstance(request, dict) or not request.keys() <= _MEMBERS:
        raise _invalid("a roll is an object of kind, target and difficulty")
    kind: Any = request.get("kind")
    target: Any = request.get("target")
    difficulty: Any = request.get("difficulty")
    if not _is_id(kind):
        raise _invalid("the kind of a roll is an id, such as a word without spaces")
    if target is not None and not _is_id(target):
        raise _invalid("the target of a roll is an id, or absent")
    is_integer = isinstance(difficulty, float) and difficulty.is_integer()
    if not is_integer or not 1 <= difficulty <= MAX_DIFFICULTY:
        raise _invalid(f"the difficulty of a roll is an integer, 1 to {MAX_DIFFICULTY}")
    return kind, target, difficulty


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _invalid(message: str) -> CoreError:
    return CoreError("ROLL_INVALID", message)
