"""Commands of a program with their parameters, and values for parameters by their type.

Programs that define parsers report them. For others, the names of commands are the texts that the program
compares or looks up, and the number of arguments is tried.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_NUMBERS = ("1", "0", "2", "10", "11", "100", "-1", "-2", "1000", "1000000", "1.5", "x")
_TEXTS = (
    "ab",
    "1",
    "Ab Cd",
    "ab_cd",
    "1.2.3",
    "10",
    "",
    "ab-cd",
    "a,b",
    "é",
    "-1",
    "2001-02-03",
    "1,2",
    "a=b",
)
_NUMERIC_TYPES = {"int", "float", "integer", "float range", "integer range", "complex", "Decimal"}
_FILE_TYPES = {"FileType", "filename", "file", "path", "directory", "Path"}
_MAX_COMMANDS = 24
_MAX_TRIED_ARGUMENTS = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a command.

    Attributes:
        flag: the name of an option; empty for an argument.
        is_flag: True for an option without a value.
        is_required: True if a call without it is not valid.
        is_number: True if it accepts numbers only.
        values: values that follow from its definition, the most usual first.
        count: the number of values that it takes.
    """

    flag: str
    is_flag: bool
    is_required: bool
    is_number: bool
    values: tuple[str, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A command of a program.

    Attributes:
        path: the names of its subcommands.
        arguments: its arguments, in order.
        options: its options.
        is_guessed: True if the number of arguments is not known.
    """

    path: tuple[str, ...]
    arguments: tuple[Parameter, ...] = ()
    options: tuple[Parameter, ...] = ()
    is_guessed: bool = False


def find_commands(
    parsers: Sequence[Mapping[str, Any]],
    trees: Iterable[ast.AST],
    files: Sequence[str],
) -> list[CommandForm]:
    """Return the commands of a program.

    Args:
        parsers: the commands that it reports, as in `ProgramInterface`.
        trees: the syntax trees of its sources.
        files: names of files in its directory, as values of parameters for files.
    """
    if parsers:
        leaves = [one for one in parsers if not one["is_group"]] or [*parsers]
        forms = [form for one in leaves for form in _split_choices(_form_of(one, files))]
        return forms[:_MAX_COMMANDS]
    words = [*dict.fromkeys(word for tree in trees for word in _iterate_words(tree))][: _MAX_COMMANDS - 1]
    free = tuple(_free_parameter(files) for _ in range(_MAX_TRIED_ARGUMENTS))
    return [
        CommandForm((), free, is_guessed=True),
        *(CommandForm((word,), free, is_guessed=True) for word in words),
    ]


def _form_of(command: Mapping[str, Any], files: Sequence[str]) -> CommandForm:
    parameters = [_parameter_of(one, files) for one in command["parameters"] if not _is_help(one)]
    return CommandForm(
        tuple(command["path"]),
        tuple(one for one in parameters if not one.flag),
        tuple(one for one in parameters if one.flag),
    )


def _is_help(parameter: Mapping[str, Any]) -> bool:
    return bool({"--help", "-h", "--version", "--install-completion"} & {*parameter["flags"]})


def _parameter_of(parameter: Mapping[str, Any], files: Sequence[str]) -> Parameter:
    kind, name = parameter["type"], parameter["name"] or ""
    is_number = kind in _NUMERIC_TYPES
    values = [*parameter["choices"]]
    if not values:
        if kind in _FILE_TYPES or "file" in name or "path" in name:
            values = [*files[:6], "no-such-file"]
        elif is_number:
            limits = [int(float(one)) for one in parameter.get("limits", ()) if one]
            values = [str(one + step) for one in limits for step in (0, -1, 1)] + [*_NUMBERS]
        else:
            values = [*filter(None, [parameter["default"]]), *_TEXTS]
    flags = sorted(parameter["flags"], key=len)
    return Parameter(
        flags[-1] if flags else "",
        parameter["is_flag"],
        parameter["is_required"],
        is_number,
        tuple(dict.fromkeys(values)),
        parameter["count"],
    )


def _split_choices(form: CommandForm) -> Iterator[CommandForm]:
    """Yield a command for each choice of its first argument, which is then the name of an operation."""
    first = form.arguments[0] if form.arguments else None
    if first is None or len(form.arguments) < 2 or not first.values or first.values[-1] == _TEXTS[-1]:  # noqa: PLR2004
        yield form
        return
    if first.is_number or "no-such-file" in first.values:
        yield form
        return
    for choice in first.values:
        yield CommandForm((*form.path, choice), form.arguments[1:], form.options)


def _free_parameter(files: Sequence[str]) -> Parameter:
    return Parameter("", is_flag=False, is_required=True, is_number=False, values=(*_TEXTS, *files[:3]))


def _iterate_words(tree: ast.AST) -> Iterator[str]:
    """Yield texts that can be names of commands: compared ones, choices, and keys of dictionaries."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys):
                yield from _texts(keys)
            case ast.Compare(ops=[ast.Eq() | ast.In()], left=left, comparators=[other]):
                yield from _texts([left, other, *getattr(other, "elts", ())])
            case ast.MatchValue(value=value):
                yield from _texts([value])


def _texts(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(str(text)) if text.strip("-").replace("-", "_").isidentifier():
                yield text
