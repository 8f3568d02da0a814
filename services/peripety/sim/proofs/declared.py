"""Facts that a scenario declares: domains of parameters, order of derived values, dependence on time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.execution import derive_names
from peripety.sim.proofs.domain import (
    ANY_TEXT,
    BOTTOM,
    FALSE,
    OBJECT,
    TRUE,
    Object,
    Value,
    join,
    literal,
    number,
)

if TYPE_CHECKING:
    from peripety.sim._pure.state import Rules

__all__ = ["depends_on_time", "domains", "in_order"]


def domains(declared: dict[str, Any]) -> Value:
    """Return the domains of the parameters of an action."""
    fields = {name: _domain(schema) for name, schema in declared.items()}
    return Value(OBJECT, object=Object(fields, BOTTOM))


def _domain(schema: dict[str, Any]) -> Value:
    if "enum" in schema:
        options = BOTTOM
        for option in schema["enum"]:
            options = join(options, literal(option))
        return options
    match schema["type"]:
        case "boolean":
            return Value(FALSE | TRUE)
        case "string":
            return ANY_TEXT
        case kind:
            return number(schema["minimum"], schema["maximum"], whole=kind == "integer")


def in_order(derives: dict[str, Any]) -> list[str]:
    """Return the names of derived values in dependency order."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for other in sorted(derive_names(derives[name]) & derives.keys()):
            visit(other)
        order[name] = None

    for name in sorted(derives):
        visit(name)
    return [*order]


def depends_on_time(rules: Rules) -> bool:
    """Return True if equal states may behave differently in different turns."""
    written = [*rules.actions, *rules.events, *rules.losses, *rules.wins]
    return any(map(_speaks_of_time, written))


def _speaks_of_time(logic: Any) -> bool:
    if isinstance(logic, str):
        return logic.startswith("turn")
    if isinstance(logic, list):
        return any(map(_speaks_of_time, logic))
    if isinstance(logic, dict):
        return logic.get("op") == "schedule" or any(map(_speaks_of_time, logic.values()))
    return False
