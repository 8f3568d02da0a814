"""Explanations of claims, in sentences with the relevant numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.canonical import canonical, number_text
from peripety.sim._pure.paths import format_path, parse_path
from peripety.sim.proofs.comparisons import OPPOSITE
from peripety.sim.proofs.conditions import plain_path
from peripety.sim.proofs.domain import (
    ABSENT,
    ARRAY,
    FALSE,
    LARGEST,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    TRUE,
    Value,
    member,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.sim._pure.state import Rules

__all__ = ["certain", "never", "turns_of"]

_MOST_MOVES = 4
_MOST_SHOWN = 120


def never(
    condition: Any, states: Value, rules: Rules, horizon: int, never_holds: Callable[[Any], bool]
) -> str:
    """Explain why a condition never holds.

    Args:
        condition: the condition.
        states: all states in which it is evaluated.
        rules: the scenario.
        horizon: number of turns.
        never_holds: returns True if a part of a condition holds in none of these states.
    """
    clause = next((part for part in _parts(condition) if never_holds(part)), None)
    if clause is None:
        return (
            f"With at most one action a turn, it is false in every state that is reachable within "
            f"{turns_of(horizon)}: {_spelled(condition)}."
        )
    reasons = [_standing(path, states, rules) for path in _read(clause)]
    course = f"With at most one action a turn, within {turns_of(horizon)}: "
    return f"{course}{'; '.join([*reasons, f'the condition needs {_spelled(clause)}'])}."


def certain(condition: Any, states: Value, rules: Rules, turn: int) -> str:
    """Explain why every run is lost by the end of a turn."""
    reasons = [_standing(path, states, rules) for path in _read(condition)]
    meets = f"every run that is still ongoing meets {_spelled(condition)} at the end of turn {turn}"
    where = f"; there {'; '.join(reasons)}" if reasons else ""
    return f"With at most one action a turn, {meets}{where}. No run can be won before."


def turns_of(count: int) -> str:
    """Format a number of turns in words."""
    return "one turn" if count == 1 else f"{count} turns"


def _parts(condition: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition."""
    if isinstance(condition, dict) and isinstance(condition.get("and"), list):
        for part in condition["and"]:
            yield from _parts(part)
    else:
        yield condition


def _read(logic: Any) -> list[str]:
    """Return the distinct state paths that an expression reads, in order."""
    found: dict[str, None] = {}

    def visit(part: Any) -> None:
        path = plain_path(part)
        if path is not None and path[0] == "state" and all(isinstance(key, str) for key in path):
            found[format_path(path)] = None
        elif isinstance(part, dict | list):
            for item in part.values() if isinstance(part, dict) else part:
                visit(item)

    visit(logic)
    return [*found]


def _standing(path: str, states: Value, rules: Rules) -> str:
    """Describe the values of a path and the rules that change it."""
    value, start = states, rules.initial
    for key in parse_path(path)[1:]:
        value = member(value, key)
        start = start.get(key) if isinstance(start, dict) else None
    begins = f" starts at {_literal(start)} and" if not isinstance(start, dict | list | None) else ""
    moves = _moves(path, rules)
    return f"{path}{begins} {_range(value)}{f' ({moves})' if moves else ''}"


def _range(value: Value) -> str:
    """Describe the possible values of a path, as a predicate."""
    if value.kinds == NUMBER:
        low, high = number_text(value.low), number_text(value.high)
        if value.low == value.high:
            return f"is always {low}"
        if value.low <= -LARGEST:
            return f"stays at most {high}"
        return f"stays at least {low}" if value.high >= LARGEST else f"stays between {low} and {high}"
    names = (
        (NUMBER, "a number"),
        (TRUE, "true"),
        (FALSE, "false"),
        (NULL, "null"),
        (TEXT, "a text"),
        (ARRAY, "an array"),
        (OBJECT, "an object"),
        (ABSENT, "nothing"),
    )
    options = [name for kind, name in names if value.kinds & kind and (kind, value.texts) != (TEXT, None)]
    if value.kinds & TEXT and value.texts is not None:
        options = [*(each for each in options if each != "a text"), *map(_literal, sorted(value.texts))]
    elif value.kinds & TEXT:
        options.append("any text")
    return f"is always {' or '.join(options)}"


def _moves(path: str, rules: Rules) -> str:
    """Describe the constant amounts that rules add to or subtract from a path."""
    moves = []
    for word, section in (("action", rules.actions), ("event", rules.events)):
        for rule in section:
            for effect in rule["effects"]:
                amount = effect.get("value")
                if (
                    effect.get("path") == path
                    and effect["op"] in {"inc", "dec"}
                    and isinstance(amount, float)
                ):
                    signed = amount if effect["op"] == "inc" else 0.0 - amount
                    moves.append(f"{word} {rule['id']} {'+' if signed >= 0 else ''}{number_text(signed)}")
    if path in rules.decay:
        moves.append(f"decay {number_text(0.0 - rules.decay[path])}")
    more = f", and {len(moves) - _MOST_MOVES} more" if len(moves) > _MOST_MOVES else ""
    return ", ".join(moves[:_MOST_MOVES]) + more


def _spelled(logic: Any) -> str:
    """Format a simple expression in infix notation, others as JSON."""
    if isinstance(logic, dict) and len(logic) == 1:
        name, operand = next(iter(logic.items()))
        if name == "var":
            return str(operand[0] if isinstance(operand, list) and operand else operand)
        if name in OPPOSITE and isinstance(operand, list):
            return f" {name} ".join(_spelled(item) for item in operand)
    return _literal(logic)


def _literal(value: Any) -> str:
    text = canonical(value).decode("utf-8")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
