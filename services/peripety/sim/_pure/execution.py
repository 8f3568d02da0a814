"""Execution of one rule: condition, derived values, effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import truthy
from peripety.sim._pure.effects import Record, apply_effects
from peripety.sim._pure.logic import Evaluation
from peripety.sim._pure.paths import split_variable

if TYPE_CHECKING:
    from peripety.sim._pure.state import State

__all__ = ["apply", "apply_rule", "derive_names", "escaped", "holds", "root"]


def apply_rule(
    state: State, rule: dict[str, Any], place: str, cause: str, record: Record, params: dict[str, Any]
) -> dict[str, str] | None:
    """Compute derived values and apply the effects of an action or event; return the error, if any."""
    try:
        derives = _derive(state, rule.get("derives", {}), params, record)
    except CoreError as error:
        return record.fail(error, f"{place}/derives")
    return apply(state, rule["effects"], derives, cause, record, f"{place}/effects")


def apply(
    state: State, effects: list[Any], derives: dict[str, Any], cause: str, record: Record, place: str
) -> dict[str, str] | None:
    """Apply effects atomically; return the error, if any."""
    try:
        apply_effects(state, effects, derives, cause, record)
    except CoreError as error:
        return record.fail(error, place)
    return None


def holds(state: State, condition: dict[str, Any], params: dict[str, Any], record: Record) -> bool:
    """Return True if a condition holds; the empty one always does."""
    return truthy(_evaluate(condition, root(state, params, {}), record))


def _derive(
    state: State, expressions: dict[str, Any], params: dict[str, Any], record: Record
) -> dict[str, Any]:
    """Compute the derived values in dependency order, otherwise by name."""
    derives: dict[str, Any] = {}

    def visit(name: str) -> None:
        if name in derives:
            return
        for other in sorted(derive_names(expressions[name]) & expressions.keys()):
            visit(other)
        try:
            derives[name] = _evaluate(expressions[name], root(state, params, derives), record)
        except CoreError as error:
            raise CoreError(error.code, error.message, f"/{escaped(name)}") from None

    for name in sorted(expressions):
        visit(name)
    return derives


def _evaluate(logic: Any, data: dict[str, Any], record: Record) -> Any:
    """Evaluate an expression and charge the call for it, even if it fails."""
    run = Evaluation()
    try:
        return run.result(logic, data)
    finally:
        record.charge(run.spent)


def escaped(name: str) -> str:
    """Escape a key as a segment of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def derive_names(expression: Any) -> set[str]:
    """Return the names of derived values that an expression reads or tests for."""
    if isinstance(expression, list):
        return {name for item in expression for name in derive_names(item)}
    if not isinstance(expression, dict):
        return set()
    names = {name for item in expression.values() for name in derive_names(item)}
    operand = expression.get("var")
    paths = [operand[0] if isinstance(operand, list) and operand else operand]
    for operator in ("missing", "missing_some"):
        paths += _texts_in(expression.get(operator))
    for path in paths:
        segments = split_variable(path) if isinstance(path, str) else ()
        if len(segments) > 1 and segments[0] == "derives":
            names.add(str(segments[1]))
    return names


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts_in(item)]
    return [value] if isinstance(value, str) else []


def root(state: State, params: dict[str, Any], derives: dict[str, Any]) -> dict[str, Any]:
    """Build the data that expressions read."""
    return {
        "state": state.tree_value,
        "params": params,
        "derives": derives,
        "turn": float(state.turn + 1),
        "entities": state.rules.entities,
    }
