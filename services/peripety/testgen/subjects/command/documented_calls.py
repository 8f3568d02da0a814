"""Calls of a Python program that its documentation shows: examples of doctests as arguments of subcommands.

An example belongs to the subcommands that the name of its function contains, such as `bump minor` for
`bump_minor`. The constants of the example are the arguments.
"""

from __future__ import annotations

import ast
import doctest
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.testgen.subjects.command.python_mutants import PythonModule


_MAX_CALLS = 64
_MAX_CALLS_OF_FUNCTION = 12
_MAX_ARGUMENT_CHARACTERS = 60


def iterate_documented_calls(modules: Iterable[PythonModule]) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of calls, the first examples of all functions first; a bounded number.

    Args:
        modules: the measured files of the program.
    """
    trees = [ast.parse(module.text) for module in modules]
    commands = [*dict.fromkeys(chain.from_iterable(map(_iterate_commands, trees)))]
    by_function: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for name, arguments in chain.from_iterable(map(_iterate_examples, trees)):
        if prefix := _find_prefix(name, commands):
            by_function.setdefault(prefix, {})[*prefix, *arguments] = None
    for calls in by_function.values():
        calls.update(dict.fromkeys(chain.from_iterable(map(_iterate_neighbours, [*calls]))))
    rows = zip_longest(*(islice(calls, _MAX_CALLS_OF_FUNCTION) for calls in by_function.values()))
    yield from islice((call for row in rows for call in row if call is not None), _MAX_CALLS)


def _iterate_neighbours(call: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield calls with the neighbours of a whole number, and with its opposite."""
    for place, text in enumerate(call[1:], start=1):
        if text.removeprefix("-").isdecimal():
            for number in (int(text) + 1, int(text) - 1, -int(text)):
                yield *call[:place], str(number), *call[place + 1 :]


def _iterate_commands(tree: ast.AST) -> Iterator[str]:
    """Yield the names of subcommands: of parsers, of choices, and keys of dictionaries."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="add_parser" | "command"), args=[ast.Constant(str(name)), *_]
            ):
                yield name
            case ast.keyword(arg="choices", value=ast.List(elts=parts) | ast.Tuple(elts=parts)):
                yield from _texts(parts)
            case ast.Dict(keys=keys):
                yield from _texts(keys)


def _texts(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(str(text)) if text.replace("-", "_").isidentifier():
                yield text


def _iterate_examples(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the functions and the constants of the examples in docstrings."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        try:
            examples = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
        except ValueError:
            continue
        for example in examples:
            yield from _parse_example(example.source)


def _parse_example(source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError:
        return
    match tree:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            negative = {id(node.operand) for node in ast.walk(tree) if _is_negation(node)}
            constants = sorted(
                (node for node in ast.walk(tree) if isinstance(node, ast.Constant)),
                key=lambda node: (node.lineno, node.col_offset),
            )
            values = [_to_argument(node, is_negative=id(node) in negative) for node in constants]
            arguments = tuple(value for value in values if value is not None)
            if arguments:
                yield name, arguments


def _is_negation(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _to_argument(constant: ast.Constant, *, is_negative: bool) -> str | None:
    """Return a constant as an argument; None for a value that an argument cannot express."""
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = f"-{value}" if is_negative else str(value)
    return text if len(text) <= _MAX_ARGUMENT_CHARACTERS and text.isprintable() else None


def _find_prefix(function: str, commands: Iterable[str]) -> tuple[str, ...]:
    """Return the subcommands that the name of a function contains, in their order, the longest first."""
    left, found = function.lower().replace("_", ""), {}
    for command in sorted(commands, key=len, reverse=True):
        word = command.lower().replace("_", "").replace("-", "")
        place = left.find(word)
        if len(word) > 2 and place >= 0:  # noqa: PLR2004 - short words occur everywhere
            found[place] = command
            left = left.replace(word, " " * len(word), 1)
    return tuple(found[place] for place in sorted(found))
