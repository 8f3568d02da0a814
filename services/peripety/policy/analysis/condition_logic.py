"""Condition logic: JSONLogic conditions decomposed, for one tool, into parts that each read one argument.

The truth of an expression is a formula over *leaves*. A leaf compares one argument with literals; the
engine evaluates it for each value. Every other expression is *opaque*: for any combination of argument
regions it may be true, false or without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety import engine
from peripety.errors import PeripetyError
from peripety.policy.analysis.argument_schema import JSON_TYPES
from peripety.policy.analysis.breakpoints import find_breakpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from peripety.policy.analysis.argument_schema import Path


# Beyond these limits an expression may exhaust its fuel, and the value of a part then depends on the others.
_MAX_STEPS = 5_000
_MAX_CHARACTERS = 30_000
_MAX_LITERALS = 64

_ORDER_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_LOOSE_COMPARISONS = frozenset({"==", "!=", *_ORDER_COMPARISONS})
_STRICT_COMPARISONS = frozenset({"===", "!=="})
ITERATING_OPERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})
"""Operators that evaluate an expression for each element of an array."""

_QUANTIFIERS = frozenset({"all", "some", "none"})
_TOOL_VARIABLES = frozenset({"server", "tool"})


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


def evaluate_truth(logic: Any, root: Mapping[str, Any]) -> bool | None:
    """Return the truth of an expression on the engine, or None if it has no value."""
    try:
        value = engine.compile_rule(logic).evaluate(root)
    except PeripetyError:
        return None
    return isinstance(value, dict) or bool(value)


def to_formula(
    logic: Any,
    server: str,
    tool: str,
    types: Callable[[Path], Collection[str]] = lambda _path: JSON_TYPES,
) -> Formula:
    """Return the formula that decides whether an expression is true, for requests to a tool.

    Args:
        logic: the expression.
        server: the server of the tool.
        tool: its name.
        types: returns the types that a value at an argument path can have.
    """
    steps, characters = _measure_expression(logic)
    if steps > _MAX_STEPS or characters > _MAX_CHARACTERS:
        return _to_opaque(logic)
    root = {"server": server, "tool": tool, "arguments": {}, "roles": []}
    return _FormulaReader(root, types).to_formula(logic)


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
    used = {*_iter_variables(logic)}
    return None in used or any(path is not None and path[:1] != ("arguments",) for path in used)


class _FormulaReader:
    """Reader of expressions for one tool."""

    def __init__(self, root: Mapping[str, Any], types: Callable[[Path], Collection[str]]) -> None:
        self._root = root
        self._types = types

    def to_formula(self, logic: Any) -> Formula:
        if isinstance(logic, dict) and len(logic) == 1:
            ((operator, operand),) = logic.items()
            if isinstance(operand, dict) and operator in {"!", "!!"}:
                operand = [operand]
            if isinstance(operand, list):
                return self._read_operation(operator, operand) or self._read_expression(logic)
        return self._read_expression(logic)

    def _read_operation(self, operator: str, operand: list[Any]) -> Formula | None:
        """Return the formula of a logical operator; None for any other operator."""
        match operator, operand:
            case (("and" | "or"), [_, *_]):
                parts = tuple(map(self.to_formula, operand))
                return And(parts) if operator == "and" else Or(parts)
            case (("!" | "!!"), [one]):
                return Not(self.to_formula(one)) if operator == "!" else self.to_formula(one)
            case (("if" | "?:"), [_, _, *_]):
                return self._read_conditional(operand)
            case "missing", [_, _, *_] if all(isinstance(name, str) for name in operand):
                return Or(tuple(self.to_formula({"missing": [name]}) for name in operand))
            case "in", [str(), variable] if variable == {"var": "roles"}:
                return RoleIs(operand[0])
        return None

    def _read_conditional(self, operand: list[Any]) -> Formula:
        condition, then, *rest = operand
        if not rest:
            otherwise: Formula = Constant(holds=False)
        elif len(rest) == 1:
            otherwise = self.to_formula(rest[0])
        else:
            otherwise = self._read_conditional(rest)
        return If(self.to_formula(condition), self.to_formula(then), otherwise)

    def _read_expression(self, logic: Any) -> Formula:
        used = {*_iter_variables(logic)}
        if all(path is not None and len(path) == 1 and path[0] in _TOOL_VARIABLES for path in used):
            return Constant(evaluate_truth(logic, self._root))
        (path,) = used if len(used) == 1 else (None,)
        if path is None or path[0] != "arguments" or len(path) == 1:
            return _to_opaque(logic)
        return _to_leaf(path[1:], logic, self._types(path[1:])) or _to_opaque(logic)


def _to_opaque(logic: Any) -> Opaque:
    literals: list[Any] = []
    names: list[Path] = []
    pending = [logic]
    while pending:
        at = pending.pop()
        if isinstance(at, list):
            pending.extend(at)
        elif isinstance(at, dict):
            pending.extend(at.values())
            names.extend(path for path in map(variable_segments, _variable_names(at)) if path is not None)
        elif _is_scalar(at):
            literals.append(at)
    reads = dict.fromkeys(path[1:] for path in names if path[0] == "arguments" and len(path) > 1)
    used = {*_iter_variables(logic)}
    closed = all(path is not None and (path[0] in _TOOL_VARIABLES or path[1:] in reads) for path in used)
    return Opaque(
        logic,
        engine.canonicalize(logic).decode(),
        tuple(reads),
        closed and not any(path is not None and path[0] == "roles" for path in used),
        reads_roles=not names or any(path[0] == "roles" for path in names),
        literals=tuple(literals[:_MAX_LITERALS]),
    )


def _variable_names(operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the variables directly in an operation."""
    for operator in ("var", "missing"):
        operand = operation.get(operator)
        for name in operand if isinstance(operand, list) else (operand,):
            if isinstance(name, str):
                yield name


def _to_leaf(path: Path, logic: Any, types: Collection[str]) -> Leaf | None:
    if not isinstance(logic, dict):
        return None
    ((operator, operand),) = logic.items()
    key = engine.canonicalize(logic).decode()
    match operator, operand:
        case _ if _depends_on_type_only(operator, operand, types):
            return Leaf(path, logic, key, ())
        case "in", [{"var": _}, [*among]] if all(map(_is_scalar, among)):
            return Leaf(path, logic, key, tuple((key, literal) for literal in among))
        case "in", [needle, {"var": _}] if _is_scalar(needle):
            return Leaf(path, logic, key, (), needles=(needle,))
        case _, [_, _, *_] if operator in _LOOSE_COMPARISONS or operator in _STRICT_COMPARISONS:
            return _comparison_leaf(path, logic, key, types)
    return None


def _depends_on_type_only(operator: str, operand: Any, types: Collection[str]) -> bool:
    """Return True if an expression distinguishes only empty and missing values within a type."""
    if operator in {"var", "missing"}:
        return True
    is_of_elements = operator in _QUANTIFIERS and isinstance(operand, list) and len(operand) > 1
    return is_of_elements and _is_variable(operand[0]) and "array" not in types


def _comparison_leaf(
    path: Path,
    logic: Mapping[str, list[Any]],
    key: str,
    types: Collection[str],
) -> Leaf | None:
    ((operator, operand),) = logic.items()
    literals = [one for one in operand if not _is_variable(one)]
    if not all(map(_is_scalar, literals)):
        return _arithmetic_leaf(path, logic, key) if operator in _LOOSE_COMPARISONS else None
    if operator in _ORDER_COMPARISONS and "string" in types and any(isinstance(one, str) for one in literals):
        return None
    placed = tuple((f"{key}:{number}", literal) for number, literal in enumerate(literals))
    reads = operator in _LOOSE_COMPARISONS and not all(isinstance(one, str) for one in literals)
    return Leaf(path, logic, key, placed, reads_numbers=reads)


def _arithmetic_leaf(path: Path, logic: Mapping[str, list[Any]], key: str) -> Leaf | None:
    """Return the leaf of a comparison of arithmetic over the argument with a literal."""
    found = find_breakpoints(logic, path)
    if found is None:
        return None
    placed = tuple((f"{key}:{number}", literal) for number, literal in enumerate(found))
    return Leaf(path, logic, key, placed, reads_numbers=True)


def _is_variable(logic: Any) -> bool:
    return isinstance(logic, dict) and len(logic) == 1 and "var" in logic


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _iter_variables(logic: Any) -> Iterator[Path | None]:
    """Yield the segments of everything that an expression reads; None if they cannot be determined."""
    if isinstance(logic, list):
        for one in logic:
            yield from _iter_variables(one)
    elif isinstance(logic, dict) and len(logic) == 1:
        ((operator, operand),) = logic.items()
        if operator in {"var", "missing", "missing_some"}:
            yield from _iter_operator_variables(operator, operand)
        elif operator in ITERATING_OPERATORS and isinstance(operand, list) and len(operand) > 1:
            yield from _iter_variables([operand[0], *operand[2:]])  # the rest reads only elements
        else:
            yield from _iter_variables(operand)
    elif isinstance(logic, dict) and logic:
        yield None


def _iter_operator_variables(operator: str, operand: Any) -> Iterator[Path | None]:
    match operator, operand:
        case (("var" | "missing"), str() | [str()]):
            yield variable_segments(operand if isinstance(operand, str) else operand[0])
        case "var", [str(), other] if _is_scalar(other):
            yield variable_segments(operand[0])
        case "missing", [*names] if all(isinstance(name, str) for name in names):
            yield from map(variable_segments, names)
        case _:
            yield None


def variable_segments(name: str) -> Path | None:
    """Return the segments of a variable; None for the whole root and for names that are not plain paths."""
    return None if not name or "[" in name else tuple(name.split("."))


def _measure_expression(logic: Any) -> tuple[int, int]:
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


@dataclass(frozen=True, slots=True, eq=False)
class MatcherEntries:
    """The values that a matcher compares with; one object for equal entries of a policy."""

    values: tuple[str, ...]


class PolicyLists:
    """The lists of a policy, expanded for matchers."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self._lists = lists
        self._known: dict[tuple[str, ...], MatcherEntries] = {}

    def entries(self, among: Sequence[str]) -> MatcherEntries:
        """Return the entries with list names replaced by the values of the lists."""
        key = tuple(among)
        if key not in self._known:
            self._known[key] = MatcherEntries(tuple(dict.fromkeys(self._expand(key))))
        return self._known[key]

    def _expand(self, among: Sequence[str]) -> Iterator[str]:
        for entry in among:
            if entry.startswith("@"):
                yield from self._expand(self._lists[entry[1:]]["values"])
            else:
                yield entry


@dataclass(frozen=True, slots=True)
class ResolvedMatcher:
    """A matcher, with the argument paths that it reads for a tool."""

    paths: tuple[Path, ...]
    kind: str
    entries: MatcherEntries
    quantifier: str


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedCondition:
    """The part of a condition that depends on the request, for a tool to which the condition applies.

    Attributes:
        roles: the caller needs one of them; None for any caller.
        matchers: the matchers, in order.
        formula: the logic; None without one.
    """

    roles: frozenset[str] | None
    matchers: tuple[ResolvedMatcher, ...]
    formula: Formula | None


class ToolTerms:
    """One tool, as one policy annotates it.

    Args:
        tool: the annotation.
        lists: the lists of the policy.
    """

    def __init__(self, tool: Mapping[str, Any], lists: PolicyLists) -> None:
        self.server: str = tool["server_name"]
        self.tool: str = tool["tool_name"]
        self.schema: Mapping[str, Any] | None = tool.get("input_schema")
        self._lists = lists
        self._paths: dict[Path, set[str]] = {}
        for argument in tool.get("argument_roles", ()):
            segments = argument["path"].split("/")[1:]
            path = tuple(one.replace("~1", "/").replace("~0", "~") for one in segments)
            self._paths.setdefault(path, set()).add(argument["role"])
        self._roles = frozenset(role for roles in self._paths.values() for role in roles)
        self._marks = {mark: bool(tool.get(mark, False)) for mark in ("read_only", "destructive")}
        self._known: dict[int, tuple[Mapping[str, Any], ResolvedCondition]] = {}
        told = [tool.get("argument_roles", ()), self.schema, self._marks]
        self.annotation_key = engine.canonicalize(told)

    def can_apply(self, when: Mapping[str, Any]) -> bool:
        """Return True if a condition can hold for the tool, for some request."""
        return (
            self.server in when.get("servers", (self.server,))
            and self.tool in when.get("tools", (self.tool,))
            and all(when.get(mark, have) is have for mark, have in self._marks.items())
            and ("argument_roles" not in when or not self._roles.isdisjoint(when["argument_roles"]))
        )

    def resolve(self, when: Mapping[str, Any]) -> ResolvedCondition:
        """Return the part of an applicable condition that depends on the request."""
        known = self._known.get(id(when))
        if known is None:
            roles = frozenset(when["roles"]) if "roles" in when else None
            logic = when.get("logic")
            known = self._known[id(when)] = (
                when,
                ResolvedCondition(
                    roles,
                    tuple(map(self._resolve_matcher, when.get("arguments", ()))),
                    to_formula(logic, self.server, self.tool) if logic else None,
                ),
            )
        return known[1]

    def _resolve_matcher(self, matcher: Mapping[str, Any]) -> ResolvedMatcher:
        roles = matcher["argument_roles"]
        return ResolvedMatcher(
            tuple(path for path, at in self._paths.items() if not at.isdisjoint(roles)),
            matcher["kind"],
            self._lists.entries(matcher["among"]),
            matcher.get("quantifier", "all"),
        )
