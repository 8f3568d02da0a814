"""A Python program as a measurable subject: its executable lines and its mutants.

Two programs with the same bytecode are equivalent (M. Papadakis et al., "Trivial Compiler Equivalence",
2015).
"""

from __future__ import annotations

import ast
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.quality import Mutant, MutantOutcome
from peripety.testgen.subjects.command.operators import changes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

__all__ = ["MOST_MUTANTS", "Program"]

MOST_MUTANTS = 300
"""Limit of mutants; each costs one process per test that covers its line, so a long program is sampled."""

_LINE_END = re.compile(r"\r\n|\r|\n")
"""The line ends of Python."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of the tree, and the id of its mutant."""

    mutant_id: str
    operator: str
    place: _Place
    after: ast.AST


class Program:
    """A Python program.

    Args:
        name: the file name.
        source: the source text.

    Raises:
        InvalidArgumentError: the source is not valid Python.

    Attributes:
        name: the file name.
        text: the source text.
        lines: the numbers of executable lines, in order.
    """

    def __init__(self, name: str, source: bytes) -> None:
        try:
            self._tree = ast.parse(source, name)
            code = compile(source, name, "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InvalidArgumentError(
                f"{name} is not a Python program: {error}", code="NOT_PYTHON"
            ) from None
        self.name = name
        self.text = source.decode(errors="replace")
        self.lines = tuple(sorted(_lines(code)))
        self._text_lines = [line.strip() for line in _LINE_END.split(self.text)]
        self._changing = threading.Lock()
        self._changes = {change.mutant_id: change for change in self._sampled()}

    def line(self, number: int) -> str:
        """Return a line without surrounding white space."""
        return self._text_lines[number - 1]

    @cached_property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants in the order of the text; a deterministic sample if there are too many.

        A program that is nested too deeply to be rendered has no mutants.
        """
        return tuple(map(self._mutant, self._changes.values()))

    def lines_of(self, mutant_id: str) -> range:
        """Return the lines of the statement that a mutant changes.

        A run that reaches the statement covers at least one of them.
        """
        return self._changes[mutant_id].place.lines

    def source_of(self, mutant_id: str) -> bytes:
        """Return the source of a mutant; this takes time for a long program."""
        change = self._changes[mutant_id]
        with self._changing:
            change.place.put(change.after)
            try:
                return ast.unparse(ast.fix_missing_locations(self._tree)).encode()
            finally:
                change.place.put(change.place.node)

    def is_same(self, mutant_id: str) -> bool:
        """Return True if a mutant compiles to identical bytecode."""
        return bool(_code(self.source_of(mutant_id)) == self._own_code)

    @cached_property
    def _own_code(self) -> Any:
        with self._changing:
            return _code(ast.unparse(self._tree).encode())

    def _sampled(self) -> list[_Change]:
        try:
            ast.unparse(self._tree)
            changes = [*self._all()]
        except (RecursionError, ValueError):
            return []
        if len(changes) <= MOST_MUTANTS:
            return changes
        by_chance = sorted(changes, key=lambda one: sha256(one.mutant_id.encode()).digest())
        kept = {change.mutant_id for change in by_chance[:MOST_MUTANTS]}
        return [change for change in changes if change.mutant_id in kept]

    def _all(self) -> Iterator[_Change]:
        numbers: Counter[str] = Counter()
        for place in _places(self._tree, (1, 0), range(1, 2)):
            line, column = place.at
            for operator, after in changes_of(place.node):
                name = f"{operator}:{line}:{column}"
                yield _Change(f"{name}:{numbers[name]}", operator, place, after)
                numbers[name] += 1

    def _mutant(self, change: _Change) -> Mutant:
        return Mutant(
            change.mutant_id,
            change.operator,
            f"/{self.name}/{change.place.at[0]}",
            _told(ast.get_source_segment(self.text, change.place.node)),
            _told(ast.unparse(change.after)),
            MutantOutcome.SURVIVED,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """A node in its tree, with the lines of its statement."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    at: tuple[int, int]
    lines: range


def _places(tree: ast.AST, at: tuple[int, int], lines: range) -> Iterator[_Place]:
    """Yield the nodes that can be changed, in the order of the text.

    Parts that tests do not observe are excluded: annotations, docstrings, error messages and standard error.
    """
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        if isinstance(value, list):
            for index, node in enumerate(value):
                if isinstance(node, ast.AST) and not _is_apart(node, name):
                    yield from _within(node, _item_setter(value, index), at, lines)
        elif isinstance(value, ast.AST):
            yield from _within(value, _field_setter(tree, name), at, lines)


def _within(
    node: ast.AST, put: Callable[[ast.AST], None], at: tuple[int, int], lines: range
) -> Iterator[_Place]:
    at = (getattr(node, "lineno", at[0]), getattr(node, "col_offset", at[1]))
    if isinstance(node, ast.stmt):
        lines = _lines_of(node)
    yield _Place(node, put, at, lines)
    if not isinstance(node, ast.JoinedStr | ast.Raise):
        yield from _places(node, at, lines)


def _lines_of(statement: Any) -> range:
    """Return the lines of a statement, without those of nested statements."""
    inner = getattr(statement, "body", None)
    last = inner[0].lineno - 1 if inner else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, last) + 1)


def _is_apart(node: ast.AST, field: str) -> bool:
    """Return True for docstrings, output to standard error, imports, and the main guard."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return field == "body"
        case ast.Expr(value=ast.Call(func=function, keywords=keywords)):
            written_to = [keyword.value for keyword in keywords if keyword.arg == "file"]
            return any(map(_is_standard_error, [*written_to, getattr(function, "value", None)]))
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_standard_error(node: ast.AST | None) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr="stderr"):
            return True
    return False


def _item_setter(items: list[Any], index: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        items[index] = node

    return put


def _field_setter(tree: ast.AST, name: str) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        setattr(tree, name, node)

    return put


def _told(text: str | None) -> bytes | None:
    return None if text is None else json.dumps(text, ensure_ascii=False).encode()


def _lines(code: CodeType) -> set[int]:
    found = {line for _, _, line in code.co_lines() if line}
    return found.union(*(_lines(inner) for inner in code.co_consts if hasattr(inner, "co_lines")))


def _code(source: bytes) -> Any:
    """Return the bytecode of a source, without positions."""

    def stripped(code: CodeType) -> tuple[Any, ...]:
        constants = tuple(
            stripped(one) if hasattr(one, "co_code") else (type(one), one) for one in code.co_consts
        )
        return code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable, code.co_flags

    return stripped(compile(source, "", "exec", optimize=0))
