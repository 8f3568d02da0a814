"""Decomposition of JSONLogic conditions into parts that each read one argument.

The truth of an expression is a formula over *leaves*. A leaf compares one argument with literals; the engine
evaluates it for each value. Every other expression is *opaque*: for any combination of argument regions it
may be
true, false or without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import sim
from peripety.errors import PeripetyError
from peripety.policies.analysis.arithmetic import turns
from peripety.policies.analysis.schemas import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from peripety.policies.analysis.paths import Path

__all__ = [
    "ITERATING",
    "And",
    "Constant",
    "Formula",
    "If",
    "Leaf",
    "Not",
    "Opaque",
    "Or",
    "RoleIs",
    "formula",
    "has_opaque",
    "mentions_tool",
    "segments_of",
    "truth",
]

# Beyond these limits an expression may exhaust its fuel, and the value of a part then depends on the others.
_MOST_STEPS = 5_000
_MOST_CHARACTERS = 30_000
_MOST_LITERALS = 64

_ORDERED = frozenset({"<", "<=", ">", ">="})
_LOOSE = frozenset({"==", "!=", *_ORDERED})
_STRICT = frozenset({"===", "!=="})
ITERATING = frozenset({"map", "filter", "reduce", "all", "some", "none"})
"""Operators that evaluate an expression for each element of an array."""

_QUANTIFYING = frozenset({"all", "some", "none"})
_OF_REQUEST = frozenset({"server", "tool"})


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for all requests to a tool: true, false, or None for no value."""

    holds: bool | None


@dataclass(frozen=True, slots=True)
class RoleIs:
    """A test for a role of the caller."""

    role: str


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A comparison of one argument with literals.

    Attributes:
        path: segments of the path of the argument.
        logic: the expression.
        key: its canonical text; equal for equal expressions.
        literals: the literals it compares with, each with a position. Equal positions mean equal treatment.
        needles: the values that it searches for in the argument.
        reads_numbers: True if it coerces strings to numbers.
    """

    path: Path
    logic: Any
    key: str
    literals: tuple[tuple[str, Any], ...]
    needles: tuple[Any, ...] = ()
    reads_numbers: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """An expression that cannot be decomposed.

    Attributes:
        logic: the expression.
        key: its canonical text; equal for equal expressions.
        reads: segments of the paths of the arguments that it is known to read.
        is_closed: True if it is known to read nothing else of a request, besides the names of the tool.
        reads_roles: True if it may read the roles of the caller.
        literals: the literals in it.
    """

    logic: Any
    key: str
    reads: tuple[Path, ...]
    is_closed: bool
    reads_roles: bool
    literals: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    part: Formula


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction, evaluated in order up to the first false part."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction, evaluated in order up to the first true part."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Conditional: one formula if the condition holds, another if not."""

    condition: Formula
    then: Formula
    otherwise: Formula


Formula: TypeAlias = Constant | RoleIs | Leaf | Opaque | Not | And | Or | If


def truth(logic: Any, root: Mapping[str, Any]) -> bool | None:
    """Return the truth of an expression on the engine, or None if it has no value."""
    try:
        value = sim.rule(logic).evaluate(root)
    except PeripetyError:
        return None
    return isinstance(value, dict) or bool(value)


def formula(
    logic: Any, server: str, tool: str, types: Callable[[Path], Collection[str]] = lambda _path: TYPES
) -> Formula:
    """Return the formula that decides whether an expression is true, for requests to a tool.

    Args:
        logic: the expression.
        server: the server of the tool.
        tool: its name.
        types: returns the types that a value at an argument path can have.
    """
    steps, characters = _size(logic)
    if steps > _MOST_STEPS or characters > _MOST_CHARACTERS:
        return _opaque(logic)
    root = {"server": server, "tool": tool, "arguments": {}, "roles": []}
    return _Reader(root, types).formula(logic)


def has_opaque(formula: Formula) -> bool:
    """Return True if a formula contains an opaque part."""
    match formula:
        case Opaque():
            return True
        case Not(part):
            return has_opaque(part)
        case And(parts) | Or(parts):
            return any(map(has_opaque, parts))
        case If(condition, then, otherwise):
            return any(map(has_opaque, (condition, then, otherwise)))
    return False


def mentions_tool(logic: Any) -> bool:
    """Return True if an expression may depend on the names of the server and the tool."""
    used = {*_variables(logic)}
    return None in used or any(path is not None and path[:1] != ("arguments",) for path in used)


class _Reader:
    """Reader of expressions for one tool."""

    def __init__(self, root: Mapping[str, Any], types: Callable[[Path], Collection[str]]) -> None:
        self._root = root
        self._types = types

    def formula(self, logic: Any) -> Formula:
        if isinstance(logic, dict) and len(logic) == 1:
            ((operator, operand),) = logic.items()
            if isinstance(operand, dict) and operator in {"!", "!!"}:
                operand = [operand]
            if isinstance(operand, list):
                return self._operation(operator, operand) or self._whole(logic)
        return self._whole(logic)

    def _operation(self, operator: str, operand: list[Any]) -> Formula | None:
        """Return the formula of a logical operator; None for any other operator."""
        match operator, operand:
            case (("and" | "or"), [_, *_]):
                parts = tuple(map(self.formula, operand))
                return And(parts) if operator == "and" else Or(parts)
            case (("!" | "!!"), [one]):
                return Not(self.formula(one)) if operator == "!" else self.formula(one)
            case (("if" | "?:"), [_, _, *_]):
                return self._conditional(operand)
            case "missing", [_, _, *_] if all(isinstance(name, str) for name in operand):
                return Or(tuple(self.formula({"missing": [name]}) for name in operand))
            case "in", [str(), variable] if variable == {"var": "roles"}:
                return RoleIs(operand[0])
        return None

    def _conditional(self, operand: list[Any]) -> Formula:
        condition, then, *rest = operand
        if not rest:
            otherwise: Formula = Constant(holds=False)
        elif len(rest) == 1:
            otherwise = self.formula(rest[0])
        else:
            otherwise = self._conditional(rest)
        return If(self.formula(condition), self.formula(then), otherwise)

    def _whole(self, logic: Any) -> Formula:
        used = {*_variables(logic)}
        if all(path is not None and len(path) == 1 and path[0] in _OF_REQUEST for path in used):
            return Constant(truth(logic, self._root))
        (path,) = used if len(used) == 1 else (None,)
        if path is None or path[0] != "arguments" or len(path) == 1:
            return _opaque(logic)
        return _leaf(path[1:], logic, self._types(path[1:])) or _opaque(logic)


def _opaque(logic: Any) -> Opaque:
    literals: list[Any] = []
    names: list[Path] = []
    pending = [logic]
    while pending:
        at = pending.pop()
        if isinstance(at, list):
            pending.extend(at)
        elif isinstance(at, dict):
            pending.extend(at.values())
            names.extend(path for path in map(segments_of, _named(at)) if path is not None)
        elif _is_scalar(at):
            literals.append(at)
    reads = dict.fromkeys(path[1:] for path in names if path[0] == "arguments" and len(path) > 1)
    used = {*_variables(logic)}
    closed = all(path is not None and (path[0] in _OF_REQUEST or path[1:] in reads) for path in used)
    return Opaque(
        logic,
        sim.canonical(logic).decode(),
        tuple(reads),
        closed and not any(path is not None and path[0] == "roles" for path in used),
        reads_roles=not names or any(path[0] == "roles" for path in names),
        literals=tuple(literals[:_MOST_LITERALS]),
    )


def _named(operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the variables directly in an operation."""
    for operator in ("var", "missing"):
        operand = operation.get(operator)
        for name in operand if isinstance(operand, list) else (operand,):
            if isinstance(name, str):
                yield name


def _leaf(path: Path, logic: Any, types: Collection[str]) -> Leaf | None:
    if not isinstance(logic, dict):
        return None
    ((operator, operand),) = logic.items()
    key = sim.canonical(logic).decode()
    match operator, operand:
        case _ if _is_by_type(operator, operand, types):
            return Leaf(path, logic, key, ())
        case "in", [{"var": _}, [*among]] if all(map(_is_scalar, among)):
            return Leaf(path, logic, key, tuple((key, literal) for literal in among))
        case "in", [needle, {"var": _}] if _is_scalar(needle):
            return Leaf(path, logic, key, (), needles=(needle,))
        case _, [_, _, *_] if operator in _LOOSE or operator in _STRICT:
            return _comparison(path, logic, key, types)
    return None


def _is_by_type(operator: str, operand: Any, types: Collection[str]) -> bool:
    """Return True if an expression distinguishes only empty and missing values within a type."""
    if operator in {"var", "missing"}:
        return True
    is_of_elements = operator in _QUANTIFYING and isinstance(operand, list) and len(operand) > 1
    return is_of_elements and _is_variable(operand[0]) and "array" not in types


def _comparison(path: Path, logic: Mapping[str, list[Any]], key: str, types: Collection[str]) -> Leaf | None:
    ((operator, operand),) = logic.items()
    literals = [one for one in operand if not _is_variable(one)]
    if not all(map(_is_scalar, literals)):
        return _turning(path, logic, key) if operator in _LOOSE else None
    if operator in _ORDERED and "string" in types and any(isinstance(one, str) for one in literals):
        return None
    placed = tuple((f"{key}:{number}", literal) for number, literal in enumerate(literals))
    reads = operator in _LOOSE and not all(isinstance(one, str) for one in literals)
    return Leaf(path, logic, key, placed, reads_numbers=reads)


def _turning(path: Path, logic: Mapping[str, list[Any]], key: str) -> Leaf | None:
    """Return the leaf of a comparison of arithmetic over the argument with a literal."""
    found = turns(logic, path)
    if found is None:
        return None
    placed = tuple((f"{key}:{number}", literal) for number, literal in enumerate(found))
    return Leaf(path, logic, key, placed, reads_numbers=True)


def _is_variable(logic: Any) -> bool:
    return isinstance(logic, dict) and len(logic) == 1 and "var" in logic


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _variables(logic: Any) -> Iterator[Path | None]:
    """Yield the segments of everything that an expression reads; None if they cannot be determined."""
    if isinstance(logic, list):
        for one in logic:
            yield from _variables(one)
    elif isinstance(logic, dict) and len(logic) == 1:
        ((operator, operand),) = logic.items()
        if operator in {"var", "missing", "missing_some"}:
            yield from _read_by(operator, operand)
        elif operator in ITERATING and isinstance(operand, list) and len(operand) > 1:
            yield from _variables([operand[0], *operand[2:]])  # the rest reads only elements
        else:
            yield from _variables(operand)
    elif isinstance(logic, dict) and logic:
        yield None


def _read_by(operator: str, operand: Any) -> Iterator[Path | None]:
    match operator, operand:
        case (("var" | "missing"), str() | [str()]):
            yield segments_of(operand if isinstance(operand, str) else operand[0])
        case "var", [str(), other] if _is_scalar(other):
            yield segments_of(operand[0])
        case "missing", [*names] if all(isinstance(name, str) for name in names):
            yield from map(segments_of, names)
        case _:
            yield None


def segments_of(name: str) -> Path | None:
    """Return the segments of a variable; None for the whole root and for names that are not plain paths."""
    return None if not name or "[" in name else tuple(name.split("."))


def _size(logic: Any) -> tuple[int, int]:
    steps = characters = 0
    pending = [logic]
    while pending:
        at = pending.pop()
        steps += 1
        if isinstance(at, str):
            characters += len(at)
        elif isinstance(at, list):
            pending.extend(at)
        elif isinstance(at, dict):
            pending.extend(at.values())
    return steps, characters
