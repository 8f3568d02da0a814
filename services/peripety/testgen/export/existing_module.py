"""Existing pytest module: the tests that it has, and its extension without a change of other parts.

A generated test is known if the module has it in one of these forms:

- a call of `check` of a subject, with literals or with the parameters of `pytest.mark.parametrize`;
- an assertion that a call of the function has the result, or raises the exception;
- a list with the arguments of the command, and assertions about the same output and exit code.

Only literals are compared. Nothing of the module is executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.errors import field_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.testgen.types import TestCase


MAX_MODULE_BYTES = 1024 * 1024
_OPTIONAL_MEMBERS = {"stdin", "files", "expected_files"}
_LINE_PATTERN = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")
"""A line as Python sees it; other separators do not end one."""

_Row = Mapping[str, ast.expr]
"""Literals in place of the parameters of a test function."""


def members_of(test: TestCase) -> dict[str, Any]:
    """Return the arguments of a check: the members of the body with a value, and the expected output."""
    body = dict(test.body or {})
    if "call" in body or ("arguments" in body and "tool_name" not in body):
        body["expected_output"] = test.expected_output
    return _normalize(body)


def _normalize(body: Mapping[str, Any]) -> dict[str, Any]:
    call = body.get("call")
    given = dict(body)
    if call:
        given = {"module": call["module"], "code": call["code"]} | {
            name: value for name, value in body.items() if name not in {"call", "arguments"}
        }
    return {
        name: value
        for name, value in given.items()
        if value is not None and (value or name not in _OPTIONAL_MEMBERS)
    }


@dataclass(slots=True)
class _Facts:
    """The literals of a test function, with one set of parameters.

    Attributes:
        checks: the arguments of checks, as JSON.
        results: expressions, as source, each with the representation of its expected value.
        commands: lists of texts.
        texts: the texts that something must be equal to, without white space at their ends.
        exit_codes: the numbers that something must be equal to.
    """

    checks: set[str] = field(default_factory=set)
    results: set[tuple[str, str]] = field(default_factory=set)
    commands: list[list[str]] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    exit_codes: set[int] = field(default_factory=set)


class ExistingModule:
    """A module that is extended.

    Args:
        source: the module; empty for a new one.

    Raises:
        InvalidArgumentError: it is too long, not UTF-8, or not Python.

    Attributes:
        names: the names that it defines or imports.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._tree = _parse(source)
        self.names = frozenset(_iterate_names(self._tree))
        self._facts = [
            facts
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
            for facts in _iterate_facts(node)
        ]
        self._checks = frozenset[str]().union(*(facts.checks for facts in self._facts))

    def knows(self, test: TestCase, argv: Sequence[str]) -> bool:
        """Return True if the module has a test with the same input and the same expectation.

        Args:
            test: the test.
            argv: the command of the subject; empty for another subject.
        """
        if test.body is None or not self._facts:
            return False
        members = members_of(test)
        if _to_key(members) in self._checks:
            return True
        if "code" in members:
            expected = str(members.get("expected_output", "")).rstrip()
            code = _plain_source(members["code"], members["module"])
            wanted = {(code, expected), (code, f"raises {expected.partition(':')[0]}")}
            return any(not wanted.isdisjoint(facts.results) for facts in self._facts)
        is_command = "arguments" in members and "tool_name" not in members
        return is_command and any(_runs_command(facts, members, argv) for facts in self._facts)

    def find_definition(self, source: str) -> str | None:
        """Return the name that is assigned the same value as in a definition; None for none."""
        wanted = _assigned(ast.parse(source).body[-1])
        for statement in self._tree.body:
            found = _assigned(statement)
            if found is not None and wanted is not None and found[1] == wanted[1]:
                return found[0]
        return None

    def extended(self, imports: Sequence[str], addition: str) -> bytes:
        """Return the module with more imports after its own, and with an addition at its end.

        Args:
            imports: lines of imports; those that it has already are left out.
            addition: the source to add.

        Raises:
            InvalidArgumentError: a name to import has another meaning in the module.
        """
        own = {ast.unparse(node) for node in self._tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
        new = [line for line in imports if line not in own and not self._has_import(line)]
        newline = "\r\n" if b"\r\n" in self._source else "\n"
        lines = _LINE_PATTERN.findall(self._source.decode())
        place = self._import_place()
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += newline
        added = [f"{line}{newline}" for line in new]
        if added and not any(isinstance(node, ast.Import | ast.ImportFrom) for node in self._tree.body):
            added = [newline, *added, newline] if place else [*added, newline]
        tail = newline * 2 + addition.replace("\n", newline)
        return "".join([*lines[:place], *added, *lines[place:], tail]).encode(errors="backslashreplace")

    def _has_import(self, line: str) -> bool:
        """Return True if the name of an import is imported already."""
        (wanted,) = ast.parse(line).body
        assert isinstance(wanted, ast.Import | ast.ImportFrom)  # noqa: S101 - the writer of modules makes imports
        name = wanted.names[0].name
        for node in self._tree.body:
            is_same_kind = isinstance(node, type(wanted))
            if is_same_kind and getattr(node, "module", "") == getattr(wanted, "module", ""):
                names = {alias.name for alias in getattr(node, "names", ()) if alias.asname is None}
                if name in names:
                    return True
        if name in self.names:
            reason = f"gives the name {name} another meaning than `{line}`; rename it, or use a new file"
            raise field_error(".append_to", reason)
        return False

    def _import_place(self) -> int:
        """Return the number of the last line of the imports at the top, or of the docstring."""
        place = 0
        for number, node in enumerate(self._tree.body):
            is_docstring = not number and ast.get_docstring(self._tree) is not None
            if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
                break
            place = node.end_lineno or place
        return place


def _parse(source: bytes) -> ast.Module:
    reason = ""
    if len(source) > MAX_MODULE_BYTES:
        reason = f"has {len(source)} bytes; at most {MAX_MODULE_BYTES} are accepted, so export to a new file"
    try:
        tree = ast.parse(source.decode("utf-8-sig"))
    except UnicodeDecodeError:
        reason = reason or "is not UTF-8; save it as UTF-8"
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = (
            reason or f"is not a Python module{line}: {error.args[0]}; repair it, or export to a new file"
        )
    if reason:
        raise field_error(".append_to", reason)
    return tree


def _iterate_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
            case _:
                yield from (
                    part.id
                    for part in ast.walk(node)
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
                )


def _assigned(statement: ast.stmt) -> tuple[str, str] | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, ast.dump(value)
    return None


# the literals of test functions


def _iterate_facts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Facts]:
    for row in _parameter_rows(function):
        facts = _Facts()
        for node in [_Substitution(row).visit(deepcopy(one)) for one in function.body]:
            for part in ast.walk(node):
                _collect(part, facts)
        yield facts


class _Substitution(ast.NodeTransformer):
    """Transformer that replaces parameters by their values."""

    def __init__(self, row: _Row) -> None:
        self._row = row

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._row.get(node.id, node)


def _parameter_rows(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[_Row]:
    """Return the values of the parameters for each case; one empty row without parameters."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[names, ast.List(elts=cases) | ast.Tuple(elts=cases), *_],
            ):
                listed = _parameter_names(names)
                rows = [_case_values(case, len(listed)) for case in cases]
                return [dict(zip(listed, row, strict=False)) for row in rows]
    return [{}]


def _parameter_names(names: ast.expr) -> list[str]:
    match names:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    return []


def _case_values(case: ast.expr, count: int) -> list[ast.expr]:
    match case:
        case ast.Call(func=ast.Attribute(attr="param"), args=values):
            return values
        case ast.Tuple(elts=values) | ast.List(elts=values) if count > 1:
            return values
    return [case]


def _collect(node: ast.AST, facts: _Facts) -> None:
    match node:
        case ast.Call(func=ast.Attribute(attr="check"), args=[ast.Constant(value=str(text))]):
            facts.checks.update(_keys_of_json(text))
        case ast.Call(func=ast.Attribute(attr="check"), args=[], keywords=keywords) if keywords:
            values = {one.arg: _literal(one.value) for one in keywords if one.arg}
            facts.checks.add(_to_key({name: value for name, (value, _) in values.items()}))
        case ast.Assert(test=test):
            _collect_assertion(test, facts)
        case ast.With(
            items=[ast.withitem(context_expr=ast.Call(func=ast.Attribute(attr="raises"), args=args))]
        ):
            if args and node.body and isinstance(node.body[-1], ast.Expr):
                facts.results.add((_plain(node.body[-1].value), f"raises {ast.unparse(args[0])}"))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            texts = [part.value for part in parts if isinstance(part, ast.Constant)]
            words = [text for text in texts if isinstance(text, str)]
            if words:
                facts.commands.append(words)


def _keys_of_json(text: str) -> Iterator[str]:
    """Yield the key of a check whose arguments are a JSON text, as in modules of earlier versions."""
    try:
        body = json.loads(text)
    except ValueError:
        return
    if isinstance(body, dict):
        yield _to_key(_normalize(body))


def _collect_assertion(test: ast.expr, facts: _Facts) -> None:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                _collect_assertion(value, facts)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            for one, other in ((left, right), (right, left)):
                value, is_literal = _literal(other)
                if is_literal:
                    facts.results.add((_plain(one), "" if value is None else repr(value)))
                    if isinstance(value, str):
                        facts.texts.add(value.rstrip())
                    elif isinstance(value, int):
                        facts.exit_codes.add(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            facts.results.add((_plain(operand), "False"))
        case ast.Call():
            facts.results.add((_plain(test), "True"))


def _literal(node: ast.expr) -> tuple[Any, bool]:
    """Return the value of a literal and True; for another expression, its source and False."""
    try:
        return ast.literal_eval(node), True
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.unparse(node), False


def _to_key(members: Mapping[str, Any]) -> str:
    return json.dumps(members, sort_keys=True, default=repr)


class _WithoutModules(ast.NodeTransformer):
    """Transformer that replaces `module.function` by `function`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = node.value
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        return ast.Name(node.attr, ast.Load()) if isinstance(inner, ast.Name) else self.generic_visit(node)


def _plain(node: ast.expr) -> str:
    return ast.unparse(_WithoutModules().visit(deepcopy(node)))


def _plain_source(code: str, module: str) -> str:
    """Return an expression without the names of modules; statements as they are."""
    try:
        return _plain(ast.parse(code, mode="eval").body)
    except SyntaxError:
        return f"{module}: {code}"


def _runs_command(facts: _Facts, members: Mapping[str, Any], argv: Sequence[str]) -> bool:
    """Return True if a function runs the command with the same input, and expects the same of it."""
    if set(members) - {"arguments", "exit_code", "expected_output"}:
        return False
    arguments = [*members["arguments"]]
    whole = [*argv, *arguments]
    is_same = any(words == whole[-len(words) :] and len(words) >= len(arguments) for words in facts.commands)
    expected, exit_code = members.get("expected_output"), members.get("exit_code")
    is_expected = expected is None or expected.rstrip() in facts.texts
    return is_same and is_expected and (expected is not None or exit_code in facts.exit_codes)
