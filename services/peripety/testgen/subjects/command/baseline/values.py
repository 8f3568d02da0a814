"""Values that the sources of a program treat differently from their neighbours.

They are the constants of comparisons and calculations with their neighbours, the texts that are compared,
searched or replaced, texts that match a regular expression or nearly do, and the members of tables. Each
value belongs to the functions that use it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

from peripety.testgen.subjects.command.baseline.patterns import iterate_matches, iterate_near_misses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.testgen.subjects.command.python_mutants import PythonModule


_MAX_TEXT = 120
_MAX_NUMBER = 10**30
_MAX_NUMBERS_OF_STATEMENT = 6
_MAX_PATTERN_TEXTS = 10
_MAX_PATTERN_NEAR_MISSES = 14
_MANY_PATTERNS = 12
"""A function that uses more patterns is given fewer texts for each."""

_PATTERN_SIGNS = re.compile(r"[\\\[\](){}|*+?^$]")
# NUL, and replacements that refer to groups of a pattern.
_UNUSABLE_PATTERN = re.compile(r"\0|\\\d|\\g<")
_PATTERN_FUNCTIONS = {
    "compile",
    "match",
    "fullmatch",
    "search",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}


@dataclass(frozen=True, slots=True)
class SourceValue:
    """A value for an argument.

    Attributes:
        text: the value as an argument.
        goal: what the value is for; a test of one value of each goal is enough.
        functions: the first lines of the functions that use it, with the key of their file.
        is_number: True for a number.
    """

    text: str
    goal: str
    functions: frozenset[tuple[str, int]]
    is_number: bool = False


class SourceFunctions:
    """The functions of a program with the lines of their statements.

    Args:
        modules: the measured files by their key.
    """

    def __init__(self, modules: Mapping[str, PythonModule]) -> None:
        self.trees = {key: ast.parse(module.text) for key, module in modules.items()}
        self._lines: dict[tuple[str, int], range] = {}
        self._users: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.nodes: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = []
        for key, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._add(key, node)

    def _add(self, key: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        place = key, node.lineno
        self.nodes.append((key, node))
        first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
        self._lines[place] = range(first.lineno, (node.end_lineno or first.lineno) + 1)
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self._users[part.id].add(place)
            elif isinstance(part, ast.Attribute):
                self._users[part.attr].add(place)

    def users_of(self, name: str) -> frozenset[tuple[str, int]]:
        """Return the functions that use a name."""
        return frozenset(self._users.get(name, ()))

    def reached(self, lines: Mapping[str, frozenset[int]]) -> frozenset[tuple[str, int]]:
        """Return the functions of which a run executes a line."""
        return frozenset(
            place
            for place, inner in self._lines.items()
            if not lines.get(place[0], frozenset()).isdisjoint(inner)
        )


def find_values(
    functions: SourceFunctions,
    values: Iterable[tuple[str, str, str, str]],
) -> list[SourceValue]:
    """Return the values of a program, each once for its goal.

    Args:
        functions: the functions of the program.
        values: the values of its modules, as in `ProgramInterface`.
    """
    found = chain(
        chain.from_iterable(_iterate_literals(key, node) for key, node in functions.nodes),
        _iterate_module_values(functions, values),
    )
    unique: dict[tuple[str, frozenset[tuple[str, int]]], SourceValue] = {}
    for value in found:
        is_usable = 0 < len(value.text) <= _MAX_TEXT and not _UNUSABLE_PATTERN.search(value.text)
        if is_usable:
            unique.setdefault((value.text, value.functions), value)
    return [*unique.values()]


def _iterate_module_values(
    functions: SourceFunctions,
    values: Iterable[tuple[str, str, str, str]],
) -> Iterator[SourceValue]:
    by_name: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for _, name, kind, value in values:
        by_name[name].append((kind, value))
    for name, parts in by_name.items():
        users = functions.users_of(name)
        if not users:
            continue
        patterns = [value for kind, value in parts if kind == "pattern" or _is_pattern(kind, value)]
        for kind, value in parts:
            if kind == "number":
                yield from _number_values(_to_number(value), f"{name} {value}", users)
            elif value not in patterns:
                yield SourceValue(value, f"{name} {value}", users)
        for pattern in patterns:
            yield from _pattern_values(pattern, users, len(patterns))


def _is_pattern(kind: str, value: str) -> bool:
    if kind != "text" or len(_PATTERN_SIGNS.findall(value)) < 2:  # noqa: PLR2004 - one is in many texts
        return False
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _pattern_values(pattern: str, users: frozenset[tuple[str, int]], count: int = 1) -> Iterator[SourceValue]:
    share = 1 if count <= _MANY_PATTERNS else 4
    for number, text in enumerate(islice(iterate_matches(pattern), _MAX_PATTERN_TEXTS // share)):
        yield SourceValue(text, f"match {number} of {pattern}", users)
    for number, text in enumerate(islice(iterate_near_misses(pattern), _MAX_PATTERN_NEAR_MISSES // share)):
        yield SourceValue(text, f"near miss {number} of {pattern}", users)


def _iterate_literals(key: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[SourceValue]:
    place = frozenset({(key, function.lineno)})
    has_power = False
    numbers: dict[int | float, None] = {}
    for statement in _iterate_statements(function.body):
        own = [*dict.fromkeys(_iterate_numbers(statement))]
        numbers.update(dict.fromkeys(own))
        has_power |= any(
            isinstance(node, ast.Pow | ast.Mult | ast.Div) for node in _walk_statement(statement)
        )
        where = f"{key}:{statement.lineno}"
        for number in own:
            yield from _number_values(number, f"{where} {number}", place)
        for one, other in combinations(own[:_MAX_NUMBERS_OF_STATEMENT], 2):
            yield _number_value(one + other, f"{where} {one}+{other}", place)
            if isinstance(one, int) and isinstance(other, int):
                yield _number_value(one * other, f"{where} {one}*{other}", place)
        yield from _iterate_texts(statement, where, place)
    if has_power:
        for number in numbers:
            if number >= 10:  # noqa: PLR2004 - powers of small numbers are found otherwise
                yield from _number_values(number**2, f"{key}:{function.lineno} {number}^2", place)
                yield from _number_values(number**3, f"{key}:{function.lineno} {number}^3", place)


def _iterate_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those within them, without functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield statement
        for field in ("body", "orelse", "finalbody"):
            yield from _iterate_statements(getattr(statement, field, ()))
        for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _iterate_statements(handler.body)


def _walk_statement(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without those of statements within it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [
            part
            for part in ast.iter_child_nodes(node)
            if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]


def _iterate_numbers(statement: ast.stmt) -> Iterator[int | float]:
    for node in _walk_statement(statement):
        match node:
            case ast.BinOp(op=ast.Pow(), left=ast.Constant(int(base)), right=ast.Constant(int(exponent))):
                if abs(base) <= 1024 and 0 <= exponent <= 12:  # noqa: PLR2004 - others are too large
                    yield base**exponent
            case ast.Constant(bool()):
                continue
            case ast.Constant(int(number) | float(number)):
                yield number


def _number_values(
    number: float,
    goal: str,
    users: frozenset[tuple[str, int]],
) -> Iterator[SourceValue]:
    """Yield a number, its neighbours, and its opposite."""
    for value, what in ((number, ""), (number + 1, " + 1"), (number - 1, " - 1"), (-number, " negative")):
        if abs(value) <= _MAX_NUMBER:
            yield _number_value(value, f"{goal}{what}", users)


def _number_value(number: float, goal: str, users: frozenset[tuple[str, int]]) -> SourceValue:
    return SourceValue(str(number), goal, users, is_number=True)


def _to_number(text: str) -> int | float:
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _iterate_texts(
    statement: ast.stmt, where: str, place: frozenset[tuple[str, int]]
) -> Iterator[SourceValue]:
    for node in _walk_statement(statement):
        match node:
            case ast.Compare(left=left, comparators=others):
                for part in (left, *others):
                    for text in _constant_texts(part):
                        yield SourceValue(text, f"{where} {text!r}", place)
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]):
                for text in _constant_texts(first):
                    if name in _PATTERN_FUNCTIONS and _is_pattern("text", text + "()"):
                        yield from _pattern_values(text, place)
                    elif text:
                        for number, value in enumerate(_iterate_around(text)):
                            yield SourceValue(value, f"{where} {text!r} {number}", place)


def _constant_texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            yield from (
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def _iterate_around(text: str) -> Iterator[str]:
    """Yield texts with another text at their end, at their beginning, twice inside, and doubled."""
    yield from (f"ab{text}", f"{text}ab", f"ab{text}cd{text}ef", f"ab{text}{text}cd", f"Ab{text}Cd")
