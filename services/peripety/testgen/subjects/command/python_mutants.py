"""Mutants of a Python module, and its executable lines.

The operators are the standard ones of the field (A. J. Offutt et al., "An Experimental Determination of
Sufficient Mutant Operators", 1996), adapted to Python's syntax trees. Two programs with the same bytecode
are equivalent (M. Papadakis et al., "Trivial Compiler Equivalence", 2015).
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import re
import threading
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from coverage import Coverage
from coverage.exceptions import NotPython
from coverage.parser import PythonParser

from peripety.core.mutation_testing import Mutant, MutantOutcome
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import CodeType


NodeReplacements: TypeAlias = "Iterator[tuple[str, ast.AST]]"
"""Replacement nodes, each with the stable name of its operator."""

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}


def iter_replacements(node: ast.AST) -> NodeReplacements:
    """Yield the replacements of a node in a stable order; none for most nodes."""
    for kind, change in _NODE_OPERATORS:
        if isinstance(node, kind):
            yield from change(node)


def _replace_comparison(node: Any) -> NodeReplacements:
    for index, comparison in enumerate(node.ops):
        for other in _COMPARISONS[type(comparison)]:
            yield (
                "change_comparison",
                _copy_with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]]),
            )


def _replace_arithmetic(node: Any) -> NodeReplacements:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield "change_arithmetic", _copy_with(node, op=other())


def _replace_connective(node: Any) -> NodeReplacements:
    yield "swap_and_or", _copy_with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for index in range(len(node.values)):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        yield "drop_operand", rest[0] if len(rest) == 1 else _copy_with(node, values=rest)


def _drop_sign(node: Any) -> NodeReplacements:
    if isinstance(node.op, ast.Not | ast.USub):
        yield "drop_sign", node.operand


def _replace_constant(node: Any) -> NodeReplacements:
    match node.value:
        case bool():
            yield "flip_boolean", _copy_with(node, value=not node.value)
        case int() | float():
            yield "shift_number", _copy_with(node, value=node.value + 1)
            yield "shift_number", _copy_with(node, value=node.value - 1)
        case str():
            yield "change_text", _copy_with(node, value="" if node.value else "x")
            for changed in change_pattern(node.value):
                yield "change_pattern", _copy_with(node, value=changed)
        case bytes():
            yield "change_text", _copy_with(node, value=b"" if node.value else b"x")


_PATTERN_TOKEN = re.compile(
    r"""(?P<quantifier>(?:[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})\??)
    | (?P<anchor>\\[bAZ] | [\^$])
    | (?P<predefined>\\[dDwWsS])
    | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
    | (?P<lookaround>\(\?<?[=!])
    | \\. | \(\?(?:P<\w+>|[:>]) | .""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN_SIGN = re.compile(
    r"\\[dwsbDWSBAZ]|\[(?:\\.|[^\]\\])+\][*+?{]|\(\?[:=!P<]|\)[*+?{]|\.[*+]|^\^|\[\w-\w"
)
"""Signs of a regular expression, or of a part of one."""

_SET_PART = re.compile(r"(?:\\.|[^\\])-(?:\\.|[^\\])|\\.|[^\\]", re.DOTALL)


def change_pattern(text: str) -> Iterator[str]:
    """Yield near misses of a regular expression, or of a part of one; none for other texts.

    The changes are common ones of tools for regular expressions: of a quantifier by one step, of a class to
    its complement, without one part of a set, without an anchor, and of a lookaround to its opposite.
    """
    if _PATTERN_SIGN.search(text) is None:
        return
    is_whole = _is_pattern(text)
    for token in _PATTERN_TOKEN.finditer(text):
        for other in _change_token(token):
            changed = text[: token.start()] + other + text[token.end() :]
            if not is_whole or _is_pattern(changed):
                yield changed


def _is_pattern(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _change_token(token: re.Match[str]) -> Iterator[str]:
    text = token[0]
    match token.lastgroup:
        case "quantifier":
            yield from _change_quantifier(token)
        case "anchor":
            yield ""
        case "predefined":
            yield text.swapcase()
        case "lookaround":
            yield text[:-1] + ("!" if text[-1] == "=" else "=")
        case "set":
            opening = text[: 2 if text[1] == "^" else 1]
            parts = _SET_PART.findall(text[len(opening) : -1])
            for index in range(len(parts) if len(parts) > 1 else 0):
                yield "".join((opening, *parts[:index], *parts[index + 1 :], "]"))


def _change_quantifier(token: re.Match[str]) -> Iterator[str]:
    text, least, most = token[0], token["least"], token["most"]
    first, lazy = (text[0], text[1:]) if text[0] != "{" else ("{", text.partition("}")[2])
    match first:
        case "+" | "*":
            yield ("*" if first == "+" else "+") + lazy
        case "?":
            yield ""
        case "{" if least or most:
            low = int(least or 0)
            high = low if not token["comma"] else int(most) if most else None
            for down, up in ((low - 1, high), (low + 1, high), *(() if high is None else ((low, high + 1),))):
                if down >= 0 and (up is None or down <= up):
                    yield f"{{{down},{'' if up is None else up}}}{lazy}"


def _negate_condition(node: Any) -> NodeReplacements:
    yield "negate_condition", _copy_with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _drop_result(node: Any) -> NodeReplacements:
    if node.value is not None:
        yield "drop_result", _copy_with(node, value=ast.Constant(None))


def _swap_jump(node: Any) -> NodeReplacements:
    other = ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    yield "swap_jump", ast.copy_location(other, node)


def _drop_filter(node: Any) -> NodeReplacements:
    if node.ifs:
        yield "drop_filter", _copy_with(node, ifs=[])


def _drop_bound(node: Any) -> NodeReplacements:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            yield "drop_bound", _copy_with(node, **{name: None})


def _drop_statement(node: Any) -> NodeReplacements:
    yield "drop_statement", ast.copy_location(ast.Pass(), node)


_NODE_OPERATORS: tuple[tuple[Any, Callable[[Any], NodeReplacements]], ...] = (
    (ast.Compare, _replace_comparison),
    (ast.BinOp | ast.AugAssign, _replace_arithmetic),
    (ast.BoolOp, _replace_connective),
    (ast.UnaryOp, _drop_sign),
    (ast.Constant, _replace_constant),
    (ast.If | ast.While | ast.IfExp, _negate_condition),
    (ast.Return, _drop_result),
    (ast.Break | ast.Continue, _swap_jump),
    (ast.comprehension, _drop_filter),
    (ast.Slice, _drop_bound),
    (ast.Expr | ast.AugAssign | ast.Raise | ast.Assert, _drop_statement),
)


def _copy_with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


_EXCLUDED_PATTERN = "|".join(
    f"(?:{pattern})" for pattern in Coverage(data_file=None, config_file=False).get_exclude_list("exclude")
)
"""The lines that coverage.py does not count by default."""

_DESCRIBING_NAMES = {
    f"__{name}__"
    for name in (
        *("all", "version", "version_info", "build", "date", "status", "title", "description", "summary"),
        *("author", "authors", "author_email", "email", "maintainer", "credits", "contact"),
        *("copyright", "license", "licence", "uri", "url", "docformat"),
    )
}
_TYPE_MAKERS = {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"}
_TYPE_FORMS = {"Union", "Optional", "Callable", "Type", "List", "Dict", "Tuple", "Set", "Mapping", "Sequence"}
_LOG_NAME = re.compile(r"_*log(ger|ging)?", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
"""The line ends of Python."""


@dataclass(frozen=True, slots=True)
class _NodeChange:
    """A change of the tree, and the id of its mutant."""

    mutant_id: str
    operator: str
    place: _NodePlace
    after: ast.AST


class PythonModule:
    """A source file of a Python program.

    Args:
        name: the file name.
        source: the source text.
        function: a function of the file, to measure it and those that it uses; empty for the whole file.
        changed: the lines to measure; None for all.

    Raises:
        InvalidArgumentError: the source is not valid Python.

    Attributes:
        name: the file name.
        text: the source text.
        lines: the numbers of executable lines, in order; the same as coverage.py reports.
    """

    def __init__(
        self,
        name: str,
        source: bytes,
        function: str = "",
        changed: frozenset[int] | None = None,
    ) -> None:
        try:
            self._tree = ast.parse(source, name)
            self.text = decode_source(source)
            self._parser = PythonParser(self.text, name, _EXCLUDED_PATTERN)
            self._parser.parse_source()
        except (SyntaxError, ValueError, RecursionError, MemoryError, NotPython) as error:
            raise InvalidArgumentError(
                f"{name} is not a Python program: {error}",
                code="NOT_PYTHON",
            ) from None
        self.name = name
        self._scope = _lines_used_by(self._tree, function) if function else None
        measured = self._parser.statements if self._scope is None else self._parser.statements & self._scope
        self._changed = changed
        if changed is not None:
            measured = measured & self._parser.translate_lines(changed)
        self.lines = tuple(sorted(measured))
        self._text_lines = [line.strip() for line in _LINE_END.split(self.text)]
        self._tree_lock = threading.Lock()

    def statement_lines(self, executed: Iterable[int]) -> set[int]:
        """Return the first lines of the statements that executed lines belong to."""
        return self._parser.translate_lines(executed).intersection(self.lines)

    def line_text(self, number: int) -> str:
        """Return a line without surrounding white space."""
        return self._text_lines[number - 1]

    @property
    def mutant_ids(self) -> tuple[str, ...]:
        """The ids of the mutants, in the order of the text.

        A module that is nested too deeply to be rendered has no mutants.
        """
        scope, changed = self._scope, self._changed
        return tuple(
            one
            for one in self._changes
            if (scope is None or scope.issuperset(self.lines_of(one)))
            and (changed is None or not changed.isdisjoint(self.lines_of(one)))
        )

    def find_affected(self) -> tuple[set[int], set[str]]:
        """Return the lines that do something else after the change, and the names with changed values.

        The lines are changed statements, and the bodies of functions whose definition has changed. Statements
        that assign names when the module is imported are left out; these are the names.
        """
        changed = self._changed or frozenset[int]()
        lines, names = {*changed}, set[str]()
        for node in ast.walk(self._tree):
            for part in getattr(node, "body", ()) if isinstance(node, ast.Module | ast.ClassDef) else ():
                if changed.isdisjoint(_statement_lines(part)):
                    continue
                if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Import | ast.ImportFrom):
                    lines.difference_update(_statement_lines(part))
                    names |= _assigned_names(part)
                elif isinstance(part, ast.ClassDef):
                    names.add(part.name)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                start = min((one.lineno for one in node.decorator_list), default=node.lineno)
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                if not changed.isdisjoint(range(start, first.lineno)):
                    lines.difference_update(range(start, first.lineno))
                    lines.update(range(first.lineno, (node.end_lineno or first.lineno) + 1))
        return lines, names

    def lines_using(self, names: set[str]) -> set[int]:
        """Return the lines of the functions that use one of the names."""
        lines = set[int]()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                used = {getattr(part, "id", None) or getattr(part, "attr", None) for part in ast.walk(node)}
                if not names.isdisjoint(used):
                    lines.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        return lines

    def lines_of_function(self, name: str) -> set[int]:
        """Return the lines of a function, and of the functions and classes that it uses by their names."""
        return _lines_used_by(self._tree, name)

    def mutant(self, mutant_id: str) -> Mutant:
        """Return a mutant."""
        change = self._changes[mutant_id]
        covered = self.statement_lines(change.place.lines)
        return Mutant(
            change.mutant_id,
            change.operator,
            f"/{self.name}/{change.place.position[0]}",
            _text_to_json(ast.get_source_segment(self.text, change.place.node)),
            _text_to_json(ast.unparse(change.after)),
            MutantOutcome.SURVIVED,
            target=f"/{self.name}/{min(covered)}" if covered else "",
        )

    def lines_of(self, mutant_id: str) -> range:
        """Return the lines of the statement that a mutant changes.

        A run that reaches the statement covers at least one of them.
        """
        return self._changes[mutant_id].place.lines

    def place_of(self, mutant_id: str) -> tuple[int, int]:
        """Return the first line of the innermost function around a mutant, 0 outside of one, and its line."""
        line = self._changes[mutant_id].place.position[0]
        return max((first for first, last in self.function_lines if first <= line <= last), default=0), line

    @cached_property
    def function_lines(self) -> Sequence[tuple[int, int]]:
        """The first and the last line of each function."""
        return [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def source_of(self, mutant_id: str) -> bytes:
        """Return the source of a mutant; this takes time for a long program."""
        change = self._changes[mutant_id]
        with self._tree_lock:
            change.place.replace_node(change.after)
            try:
                return ast.unparse(ast.fix_missing_locations(self._tree)).encode()
            finally:
                change.place.replace_node(change.place.node)

    def is_equivalent(self, mutant_id: str) -> bool:
        """Return True if a mutant compiles to identical bytecode."""
        return bool(_bytecode(self.source_of(mutant_id)) == self._own_code)

    @cached_property
    def _own_code(self) -> Any:
        with self._tree_lock:
            return _bytecode(ast.unparse(self._tree).encode())

    @cached_property
    def _changes(self) -> Mapping[str, _NodeChange]:
        try:
            ast.unparse(self._tree)
            return {change.mutant_id: change for change in self._iter_changes()}
        except (RecursionError, ValueError):
            return {}

    def _iter_changes(self) -> Iterator[_NodeChange]:
        numbers: Counter[str] = Counter()
        left_out = _undetectable_statements(self._tree)
        for place in _iter_places(self._tree, (1, 0), range(1, 2), left_out):
            line, column = place.position
            for operator, after in iter_replacements(place.node):
                name = f"{operator}:{line}:{column}"
                yield _NodeChange(f"{name}:{numbers[name]}", operator, place, after)
                numbers[name] += 1


def _lines_used_by(tree: ast.Module, function: str) -> set[int]:
    """Return the lines of the bodies of a function and of those that it uses, by their names."""
    bodies: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    waiting, seen, lines = [function], {function}, set[int]()
    while waiting:
        node = bodies.get(waiting.pop())
        if node is None:
            continue
        lines.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & bodies.keys() - seen
        seen |= names
        waiting += sorted(names)
    return lines


def _assigned_names(statement: Any) -> set[str]:
    """Return the names that a statement assigns or imports."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    targets = getattr(statement, "targets", None) or [statement.target]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


@dataclass(frozen=True, slots=True)
class _NodePlace:
    """A node in its tree, with the lines of its statement."""

    node: ast.AST
    replace_node: Callable[[ast.AST], None]
    position: tuple[int, int]
    lines: range


def _undetectable_statements(tree: ast.Module) -> frozenset[ast.AST]:
    """Return the statements outside of functions and classes that no test of the behaviour observes.

    - `__all__`, `__version__`, `__author__` and other such names that the module itself does not read: they
      describe the package. A test of them would repeat them, and fail with each release.
    - Type variables and aliases of types, and what is under `if TYPE_CHECKING`: only type checkers read them,
      unless the module calls `get_args`.
    """
    outer: list[Any] = [*_iterate_outer_statements(tree.body)]
    extended = {id(one.value.func.value) for one in outer if _is_extending_all(one)}
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in extended
    }
    return frozenset(
        one
        for one in outer
        if _is_describing(one, read) or ("get_args" not in read and _is_for_type_checkers(one))
    )


def _iterate_outer_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try):
            handlers = getattr(statement, "handlers", ())
            for part in (statement.body, statement.orelse, *(one.body for one in handlers)):
                yield from _iterate_outer_statements(part)


def _is_extending_all(statement: Any) -> bool:
    """Return True for a call of a method of `__all__`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__")))):
            return True
    return False


def _is_describing(statement: ast.stmt, read: set[str]) -> bool:
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
            | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name in _DESCRIBING_NAMES and name not in read
    return _is_extending_all(statement)


def _is_for_type_checkers(statement: ast.stmt) -> bool:
    match statement:
        case ast.AnnAssign(annotation=annotation):
            return _last_name(annotation) == "TypeAlias"
        case ast.Assign(value=ast.Call(func=function)):
            return _last_name(function) in _TYPE_MAKERS
        case ast.Assign(value=ast.Subscript(value=value)):
            return _last_name(value) in _TYPE_FORMS
        case ast.If(test=test, orelse=[]):
            return _last_name(test) == "TYPE_CHECKING"
    return type(statement).__name__ == "TypeAlias"  # a statement since Python 3.12


def _last_name(node: ast.AST) -> str:
    """Return the name of a name or an attribute; empty for other nodes."""
    return getattr(node, "id", None) or getattr(node, "attr", None) or ""


def _iter_places(
    tree: ast.AST, position: tuple[int, int], lines: range, left_out: frozenset[ast.AST]
) -> Iterator[_NodePlace]:
    """Yield the nodes that can be changed, in the order of the text.

    Parts that tests do not observe are excluded: annotations, docstrings, error messages, logs, and standard
    error.
    """
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        if isinstance(value, list):
            for index, node in enumerate(value):
                if isinstance(node, ast.AST) and node not in left_out and not _is_unobserved(node, name):
                    yield from _iter_places_within(
                        node, _item_setter(value, index), position, lines, left_out
                    )
        elif isinstance(value, ast.AST):
            yield from _iter_places_within(value, _field_setter(tree, name), position, lines, left_out)


def _iter_places_within(
    node: ast.AST,
    replace_node: Callable[[ast.AST], None],
    position: tuple[int, int],
    lines: range,
    left_out: frozenset[ast.AST],
) -> Iterator[_NodePlace]:
    position = (getattr(node, "lineno", position[0]), getattr(node, "col_offset", position[1]))
    if isinstance(node, ast.stmt):
        lines = _statement_lines(node)
    yield _NodePlace(node, replace_node, position, lines)
    if not isinstance(node, ast.JoinedStr | ast.Raise):
        yield from _iter_places(node, position, lines, left_out)


def _statement_lines(statement: Any) -> range:
    """Return the lines of a statement, without those of nested statements."""
    inner = getattr(statement, "body", None)
    last = inner[0].lineno - 1 if inner else statement.end_lineno
    return range(statement.lineno, max(statement.lineno, last) + 1)


def _is_unobserved(node: ast.AST, field: str) -> bool:
    """Return True for docstrings, messages to a log or to standard error, imports, and the main guard."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return field == "body"
        case ast.Expr(value=ast.Call(func=function, keywords=keywords)):
            written_to = [keyword.value for keyword in keywords if keyword.arg == "file"]
            owner = getattr(function, "value", None)
            return _is_log(owner) or any(map(_is_standard_error, [*written_to, owner]))
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_log(node: ast.AST | None) -> bool:
    return node is not None and _LOG_NAME.fullmatch(_last_name(node)) is not None


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


def decode_source(source: bytes) -> str:
    """Return the text of a source file, in the encoding that it declares."""
    try:
        return importlib.util.decode_source(source)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return source.decode(errors="replace")


def _text_to_json(text: str | None) -> bytes | None:
    return None if text is None else json.dumps(text, ensure_ascii=False).encode()


def _bytecode(source: bytes) -> Any:
    """Return the bytecode of a source, without positions."""

    def stripped(code: CodeType) -> tuple[Any, ...]:
        constants = tuple(
            stripped(one) if hasattr(one, "co_code") else (type(one), one) for one in code.co_consts
        )
        return code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable, code.co_flags

    return stripped(compile(source, "", "exec", optimize=0))
