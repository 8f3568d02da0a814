"""Static checks of JSONLogic expressions: certain errors, and forms that other engines read differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from peripety.errors import Finding
from peripety.sim._pure.operators import OPERATORS
from peripety.sim._pure.paths import Path, split_variable
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Scope", "check_expression"]

MAX_DEPTH = 64
_ANY = 10_000

# Minimum and maximum number of arguments. Forms that JSONLogic engines disagree on (no argument, a lone
# operand) are rejected.
_ARITY: dict[str, tuple[int, int]] = {
    "var": (1, 2),
    "missing": (1, _ANY),
    "missing_some": (2, 2),
    "if": (2, _ANY),
    "?:": (3, 3),
    "and": (1, _ANY),
    "or": (1, _ANY),
    "!": (1, 1),
    "!!": (1, 1),
    "==": (2, _ANY),
    "!=": (2, 2),
    "===": (2, _ANY),
    "!==": (2, 2),
    "<": (2, _ANY),
    "<=": (2, _ANY),
    ">": (2, _ANY),
    ">=": (2, _ANY),
    "+": (1, _ANY),
    "-": (1, _ANY),
    "*": (1, _ANY),
    "/": (2, _ANY),
    "%": (2, _ANY),
    "min": (1, _ANY),
    "max": (1, _ANY),
    "map": (2, 2),
    "filter": (2, 2),
    "reduce": (3, 3),
    "all": (2, 2),
    "some": (2, 2),
    "none": (2, 2),
    "merge": (1, _ANY),
    "in": (2, 2),
    "cat": (1, _ANY),
    "substr": (2, 3),
}
_ITERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})


class Scope(Protocol):
    """Resolver of variables: the names that an expression may read."""

    @property
    def example(self) -> str:
        """A valid variable, for messages."""

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable.

        Args:
            text: the variable as written.
            path: its segments, at least one.
            place: pointer of the variable in the document.
        """


def check_expression(logic: Any, place: str, scope: Scope) -> Iterator[Finding]:
    """Yield the findings about an expression."""
    yield from _check_value(logic, place, scope, 1)


def _check_value(logic: Any, place: str, scope: Scope | None, depth: int) -> Iterator[Finding]:
    """Yield the findings about a part; without a scope inside an iterator, where elements are unknown."""
    if depth > MAX_DEPTH:
        yield Finding("TOO_DEEP", place, f"the expression is nested deeper than {MAX_DEPTH} levels")
        return
    if isinstance(logic, list):
        for index, item in enumerate(logic):
            yield from _check_value(item, f"{place}/{index}", scope, depth + 1)
    elif isinstance(logic, dict) and logic:
        yield from _check_operation(logic, place, scope, depth)


def _check_operation(logic: dict[str, Any], place: str, scope: Scope | None, depth: int) -> Iterator[Finding]:
    if len(logic) > 1:
        yield Finding("UNKNOWN_OPERATOR", place, "an operation has exactly one key, its operator")
        return
    ((name, operand),) = logic.items()
    if name not in OPERATORS:
        known = ", ".join(OPERATORS)
        yield Finding(
            "UNKNOWN_OPERATOR", place, f"'{name[:40]}' is not an operator; the operators are {known}"
        )
        return
    here = f"{place}{pointer([name])}"
    arguments = operand if isinstance(operand, list) else [operand]
    yield from _check_arity(name, arguments, here)
    if name == "var":
        yield from _check_variable(arguments[:1], here, scope)
        arguments = arguments[1:]
    elif name in {"missing", "missing_some"}:
        yield from _check_missing(name, arguments, here, scope)
    for index, argument in enumerate(arguments):
        inner = None if name in _ITERATORS and index == 1 else scope
        step = f"/{index}" if isinstance(operand, list) else ""
        yield from _check_value(argument, f"{here}{step}", inner, depth + 1)


def _check_arity(name: str, arguments: list[Any], place: str) -> Iterator[Finding]:
    least, most = _ARITY[name]
    if not least <= len(arguments) <= most:
        wanted = (
            f"{least}" if least == most else f"at least {least}" if most == _ANY else f"{least} to {most}"
        )
        yield Finding("WRONG_ARITY", place, f"'{name}' takes {wanted} arguments, not {len(arguments)}")


def _check_variable(arguments: list[Any], place: str, scope: Scope | None) -> Iterator[Finding]:
    if scope is None or not arguments:
        return
    text = arguments[0]
    yield from _check_name(text if isinstance(text, str) else "", place, scope)


def _check_missing(name: str, arguments: list[Any], place: str, scope: Scope | None) -> Iterator[Finding]:
    paths = arguments[1] if name == "missing_some" and len(arguments) > 1 else arguments
    if scope is None or not isinstance(paths, list):
        return
    for path in paths:
        if isinstance(path, str):
            yield from _check_name(path, place, scope)


def _check_name(text: str, place: str, scope: Scope) -> Iterator[Finding]:
    path = split_variable(text)
    if path:
        yield from scope.check_variable(text, path, place)
    else:
        message = f"a variable outside an iterator must be a fixed path, such as {scope.example}"
        yield Finding("DYNAMIC_PATH", place, message)
