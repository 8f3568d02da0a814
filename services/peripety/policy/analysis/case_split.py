"""Case split of expressions over several arguments.

It applies if the schema lists the values of all arguments but at most one. In each case the remaining
expression reads one argument, with types known from the schema, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from peripety.policy.analysis.argument_schema import is_inside, set_at_path
from peripety.policy.analysis.condition_logic import (
    ITERATING_OPERATORS,
    Constant,
    evaluate_truth,
    has_opaque,
    to_formula,
    variable_segments,
)
from peripety.policy.analysis.value_partitions import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.policy.analysis.argument_schema import ArgumentSchema, Path
    from peripety.policy.analysis.condition_logic import Formula, Opaque


_MAX_CASES = 128


class _NotSubstitutableError(Exception):
    """A value cannot replace its variable."""


@dataclass(frozen=True, slots=True)
class SplitCase:
    """One combination of listed values.

    Attributes:
        values: the values by the paths of their arguments; `MISSING` for a missing one.
        formula: the remaining expression, without opaque parts.
    """

    values: Mapping[Path, Any]
    formula: Formula


def split_cases(opaque: Opaque, schema: ArgumentSchema, server: str, tool: str) -> list[SplitCase] | None:
    """Return all cases of an expression that the tool accepts; None if a split is not possible.

    Args:
        opaque: the expression.
        schema: the schema of the tool.
        server: its server.
        tool: its name.
    """
    reads = opaque.reads
    if not opaque.is_closed or any(is_inside(one, other) for one in reads for other in reads):
        return None
    listed = {path: values for path in reads if (values := _list_values(path, schema)) is not None}
    size = 1
    for values in listed.values():
        size *= len(values)
    if size > _MAX_CASES or len(listed) < len(reads) - 1:
        return None
    found: list[SplitCase] = []
    for chosen in product(*listed.values()):
        values_of = dict(zip(listed, chosen, strict=True))
        if len(listed) == len(reads):
            left: Formula | None = Constant(_evaluate_with(opaque.logic, values_of, server, tool))
        else:
            left = _remaining_formula(opaque.logic, values_of, schema, server, tool)
        if left is None:
            return None
        found.append(SplitCase(values_of, left))
    return found


def _list_values(path: Path, schema: ArgumentSchema) -> list[Any] | None:
    """Return all values at a path, including `MISSING`; None if they are not listed or contain arrays."""
    place = schema.constraint_at(path)
    values = schema.list_values(place.schema)
    if values is None or any(isinstance(value, list) for value in values):
        return None
    return [*values, *([MISSING] if place.optional else ())]


def _evaluate_with(logic: Any, values: Mapping[Path, Any], server: str, tool: str) -> bool | None:
    arguments: dict[str, Any] = {}
    for path, value in values.items():
        if value is not MISSING:
            set_at_path(arguments, path, value)
    return evaluate_truth(logic, {"server": server, "tool": tool, "arguments": arguments})


def _remaining_formula(
    logic: Any,
    values: Mapping[Path, Any],
    schema: ArgumentSchema,
    server: str,
    tool: str,
) -> Formula | None:
    """Return the expression that remains after substitution; None if it has an opaque part."""
    try:
        left = _substitute(logic, values)
    except _NotSubstitutableError:
        return None
    found = to_formula(
        left,
        server,
        tool,
        lambda path: schema.accepted_types(schema.constraint_at(path).schema),
    )
    return None if has_opaque(found) else found


def _substitute(logic: Any, values: Mapping[Path, Any]) -> Any:
    """Return an expression with values substituted for variables."""
    if isinstance(logic, list):
        return [_substitute(one, values) for one in logic]
    if not isinstance(logic, dict) or len(logic) != 1:
        return logic
    ((operator, operand),) = logic.items()
    if operator in {"var", "missing", "missing_some"}:
        return _substitute_variable(logic, values)
    if operator in ITERATING_OPERATORS and isinstance(operand, list) and len(operand) > 1:
        # The expression for each element reads only that element.
        source, each, *rest = operand
        return {operator: [_substitute(source, values), each, *_substitute(rest, values)]}
    return {operator: _substitute(operand, values)}


def _substitute_variable(logic: Mapping[str, Any], values: Mapping[Path, Any]) -> Any:
    ((operator, operand),) = logic.items()
    path = next((one for one in _iter_argument_paths(operand) if one in values), None)
    if path is None:
        return logic
    value = values[path]
    if operator != "var" or isinstance(value, dict) or (isinstance(operand, list) and len(operand) > 1):
        raise _NotSubstitutableError
    return None if value is MISSING else value


def _iter_argument_paths(operand: Any) -> Iterator[Path]:
    """Yield the paths of the arguments that an operand names."""
    for name in operand if isinstance(operand, list) else [operand]:
        path = variable_segments(name) if isinstance(name, str) else None
        if path is not None and path[0] == "arguments" and len(path) > 1:
            yield path[1:]
