"""Examples in the documentation of a Python program: doctests, and commands in a README.

An example is an expectation with a source, because its author has written down what the program must do.
"""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.testgen.subjects.command.python_program import PythonCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.testgen.subjects.command.python_mutants import PythonModule


_MAX_CITED = 200
_MAX_EXPECTED = 2_000
_SKIPPING = (doctest.SKIP, doctest.ELLIPSIS, doctest.NORMALIZE_WHITESPACE)
# Addresses, and results that are not written down in full.
_VOLATILE_PATTERN = re.compile(r" at 0x[0-9a-fA-F]+|\.\.\.")
_PROMPT_PATTERN = re.compile(r"^\s*[$%] +(\S.*)$")
_ERROR_PATTERN = re.compile(r"(?:[\w]+\.)*(\w+)(: .*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DocumentedCall:
    """An example of a function.

    Attributes:
        function: the name of the function, or of the file.
        call: the statements, with those before them that they depend on.
        shown: the statement that is shown.
        expected: the printed result.
        citation: the place and the text of the example.
        is_error: True if the example raises an exception.
    """

    function: str
    call: PythonCall
    shown: str
    expected: str
    citation: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class DocumentedCommand:
    """A command in a README.

    Attributes:
        arguments: the arguments after the name of the program.
        expected: the documented output; None if none is shown.
        citation: the place and the text of the example.
    """

    arguments: tuple[str, ...]
    expected: str | None
    citation: str


_Documented: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def iterate_documented_calls(modules: Mapping[str, PythonModule]) -> Iterator[DocumentedCall]:
    """Yield the examples of docstrings that print a complete result.

    Args:
        modules: the measured files by their key.
    """
    for module in modules.values():
        name = module.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        for node, owner in _iterate_documented(ast.parse(module.text), ""):
            text = ast.get_docstring(node, clean=False)
            if text:
                start = node.body[0].lineno
                yield from _iterate_examples(text, name, owner, f"{module.name}, line", start)


def iterate_readme_calls(text: str, module: str) -> Iterator[DocumentedCall]:
    """Yield the examples of Python in a README.

    Args:
        text: the README.
        module: the package that it is about.
    """
    yield from _iterate_examples(text, module, module, "README, line", 1)


def _iterate_documented(tree: _Documented, owner: str) -> Iterator[tuple[_Documented, str]]:
    """Yield the nodes with a docstring, with their dotted names."""
    yield tree, owner
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _iterate_documented(node, f"{owner}.{node.name}".strip("."))


def _iterate_examples(text: str, module: str, owner: str, place: str, start: int) -> Iterator[DocumentedCall]:
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return
    setup: list[str] = []
    for example in examples:
        source = example.source.strip()
        tree = _parse(source)
        if tree is None:
            continue
        if not example.want:
            if not isinstance(tree.body[0], ast.Expr):
                setup.append(source)
            continue
        expected = _error_text(example.exc_msg) if example.exc_msg else example.want.rstrip("\n")
        is_usable = not (
            any(example.options.get(option) for option in _SKIPPING)
            or _VOLATILE_PATTERN.search(expected)
            or len(expected) > _MAX_EXPECTED
            or len(tree.body) > 1
        )
        if is_usable:
            line = start + example.lineno
            cited = f"{place} {line}: >>> {source} {expected}"[:_MAX_CITED]
            code = "\n".join([*setup, source])
            yield DocumentedCall(
                owner, PythonCall(module, code), source, expected, cited, bool(example.exc_msg)
            )


def _parse(source: str) -> ast.Module | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return tree if tree.body else None


def _error_text(message: str) -> str:
    """Return the text of an exception without the module of its class."""
    found = _ERROR_PATTERN.fullmatch(message.strip())
    return message.strip() if found is None else f"{found[1]}{found[2] or ''}".removesuffix(": ").strip()


def iterate_documented_commands(text: str, names: Iterable[str]) -> Iterator[DocumentedCommand]:
    """Yield the commands in a README with the output that follows them.

    Args:
        text: the README.
        names: the names that the program is called by.
    """
    lines = text.splitlines()
    known = {*names}
    for number, line in enumerate(lines):
        found = _PROMPT_PATTERN.match(line)
        if found is None or any(sign in found[1] for sign in "|<>;&`$"):
            continue
        try:
            words = shlex.split(found[1], comments=True)
        except ValueError:
            continue
        while words and words[0] in {"python", "python3", "-m", "sudo"}:
            del words[0]
        if not words or words[0].rpartition("/")[2] not in known:
            continue
        indent = line[: len(line) - len(line.lstrip())]
        output = _following_output(lines[number + 1 :], indent)
        shown = " ".join([found[1], *output])[:_MAX_CITED]
        expected = "\n".join(output) if output and not _VOLATILE_PATTERN.search("\n".join(output)) else None
        yield DocumentedCommand(tuple(words[1:]), expected, f"README, line {number + 1}: $ {shown}")


def _following_output(lines: list[str], indent: str) -> list[str]:
    output: list[str] = []
    for line in lines:
        is_end = (
            not line.strip() or line.strip().startswith(("```", "$", "%", "#")) or not line.startswith(indent)
        )
        if is_end:
            break
        output.append(line.removeprefix(indent).rstrip())
    return output
