"""Baseline tests of a JavaScript program: calls that differ in what they show.

The options come from the help of the program and from its sources, and the values from the literals of the
functions that a call reaches. Each test describes the current behaviour.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from peripety.testgen.subjects.command.baseline.calls import (
    TEXTS,
    CandidateCalls,
    CommandForm,
    Parameter,
    choose,
)
from peripety.testgen.subjects.command.baseline.tests import observed_test
from peripety.testgen.subjects.command.baseline.values import (
    MAX_TEXT,
    SourceValue,
    is_pattern,
    iterate_around,
    number_values,
    pattern_values,
    to_number,
    usable_values,
)
from peripety.testgen.subjects.command.python_program import ProgramInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.javascript_program import JavaScriptModule, JavaScriptProgram
    from peripety.testgen.types import DraftTest


_MAX_OBSERVED = 96
_MAX_OPTIONS = 32
_MAX_ARGUMENTS = 2
_MAX_FILES = 10
_MAX_WORDS = 6
_MAX_TEXTS = 8
_FLAG = r"(?<![\w/-])(--?[A-Za-z0-9][\w-]*)"
_FLAG_PATTERN = re.compile(_FLAG)
_VALUED_PATTERN = re.compile(_FLAG + r"(?=(?:\s*[,|]\s*--?[\w-]+)*(?:=|[ ](?:<|\[<?\w|[A-Z]{2})))")
_PLAIN_PATTERN = re.compile(r"[\w.\-+ ]*")
_OPTION_VALUES = ("2", "ab", "1.5", "0", "-1", "x")


class ScriptFunctions:
    """The functions of a JavaScript program with their lines.

    Args:
        modules: the measured files by their path.
    """

    def __init__(self, modules: Mapping[str, JavaScriptModule]) -> None:
        self._lines = {
            (path, place): range(first, last + 1)
            for path, module in modules.items()
            for place, first, last in module.functions
        }
        for path, module in modules.items():
            # The statements outside of functions are those of a function at line 0.
            self._lines[path, 0] = range(1, module.text.count("\n") + 2)

    def at_lines(self, places: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
        """Return the functions with the lines in them."""
        wanted = {*places}
        return frozenset(
            place for place, inner in self._lines.items() if any((place[0], one) in wanted for one in inner)
        )

    def reached(self, lines: Mapping[str, frozenset[int]]) -> frozenset[tuple[str, int]]:
        """Return the functions of which a run executes a line."""
        return frozenset(
            place
            for place, inner in self._lines.items()
            if not lines.get(place[0], frozenset()).isdisjoint(inner)
        )


class ScriptTests:
    """The baseline tests of a JavaScript program.

    Args:
        program: the program.
        files: names of files in its directory.
        help_text: what it prints for `--help`.
        seconds: the limit of the processor time for trying calls, about.
    """

    def __init__(
        self, program: JavaScriptProgram, files: Sequence[str], help_text: str, seconds: float
    ) -> None:
        self._program = program
        self._files = [one for one in files if one not in {"package.json", "package-lock.json"}]
        self._help = help_text
        self._seconds = seconds

    def __iter__(self) -> Iterator[DraftTest]:
        """Yield the tests, the most important ones first."""
        documented = [command.arguments for command in self._program.documented_commands()]
        calls = CandidateCalls(
            find_script_commands(self._program.modules.values(), self._help, self._files, documented),
            ScriptFunctions(self._program.modules),
            find_script_values(self._program.modules),
            {(): [*_pair_files(self._files)]},
            lambda given: self._program.survey_calls(given, self._seconds / 4),
        )
        candidates = [one for one in calls.find() if one.depends_on_changes(self._program)]
        known = {ProgramInput(one) for one in documented}
        chosen = (candidates[index] for index in choose(candidates))
        yield from islice((observed_test(one) for one in chosen if one.given not in known), _MAX_OBSERVED)


def _pair_files(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of files of different kinds, those of the rarest kind first."""
    chosen = _choose_files(files)
    for one in chosen:
        for other in chosen:
            if PurePosixPath(one).suffix != PurePosixPath(other).suffix:
                yield one, other


def _choose_files(files: Sequence[str]) -> list[str]:
    """Return a few files, those of the rarest kind first: one of many of a kind can be left out."""
    kinds = Counter(PurePosixPath(name).suffix for name in files)
    return sorted(files, key=lambda name: kinds[PurePosixPath(name).suffix])[:_MAX_FILES]


def find_script_commands(
    modules: Iterable[JavaScriptModule],
    help_text: str,
    files: Sequence[str],
    documented: Iterable[tuple[str, ...]],
) -> list[CommandForm]:
    """Return the calls of a program: with arguments, with options, and with its input.

    Args:
        modules: its measured files.
        help_text: what it prints for `--help`.
        files: names of files in its directory.
        documented: the arguments of the commands in its documentation.
    """
    literals = [literal for module in modules for literal in module.literals]
    compared = [
        flag
        for _, _, kind, text in literals
        if kind in {"compared", "argument", "pattern"}
        for flag in _FLAG_PATTERN.findall(text)
        if kind == "pattern" or flag == text
    ]
    flags = [*dict.fromkeys([*_FLAG_PATTERN.findall(help_text), *compared])][:_MAX_OPTIONS]
    valued = {*_VALUED_PATTERN.findall(help_text)}
    levels = [text for _, _, kind, text in literals if kind == "compared" and text.isidentifier()]
    values = (*_OPTION_VALUES[:2], *dict.fromkeys(levels), *_OPTION_VALUES[2:])
    # Not every help shows which options take a value.
    options = [_option(flag, values if flag in valued else values[:2]) for flag in flags]
    options += [_option(flag, ()) for flag in flags if flag not in valued]
    words = [word for row in documented for word in row if not _FLAG_PATTERN.fullmatch(word)]
    texts = tuple(dict.fromkeys((*_choose_files(files), *words[:_MAX_WORDS], *TEXTS[:_MAX_TEXTS])))
    argument = Parameter("", is_flag=False, is_required=True, is_number=False, values=texts)
    # Each of these has an equal share of the time.
    return [
        CommandForm((), (argument,), is_guessed=True),
        CommandForm((), (argument,) * _MAX_ARGUMENTS, is_guessed=True),
        CommandForm((), (), tuple(options), is_guessed=True, is_filter=True),
        CommandForm((), (argument,), tuple(options), is_guessed=True),
    ]


def _option(flag: str, values: tuple[str, ...]) -> Parameter:
    return Parameter(flag, is_flag=not values, is_required=False, is_number=False, values=values)


def find_script_values(modules: Mapping[str, JavaScriptModule]) -> list[SourceValue]:
    """Return the values of the literals of a program, each for the function that has it.

    Args:
        modules: its measured files by their path.
    """
    return usable_values(
        value
        for path, module in modules.items()
        for function, line, kind, text in module.literals
        if not _FLAG_PATTERN.fullmatch(text)
        for value in _values_of(kind, text, f"{path}:{line}", frozenset({(path, function)}))
    )


def _values_of(kind: str, text: str, where: str, place: frozenset[tuple[str, int]]) -> Iterator[SourceValue]:
    if kind == "number":
        yield from number_values(to_number(text), f"{where} {text}", place)
    elif kind == "length":
        length = int(to_number(text))
        for one in range(max(length - 1, 1), min(length + 1, MAX_TEXT) + 1):
            yield SourceValue(("1234567890" * MAX_TEXT)[:one], f"{where} {length}", place)
    elif kind == "pattern" or is_pattern("text", text):
        yield from pattern_values(text, place)
    elif kind == "argument" and len(text) == 1:
        for number, value in enumerate((text, *iterate_around(text))):
            yield SourceValue(value, f"{where} {text!r} {number}", place)
    elif len(text) == 1 or (kind != "text" and _PLAIN_PATTERN.fullmatch(text)):
        yield SourceValue(text, f"{where} {text!r}", place)
        if len(text) == 1:
            yield SourceValue(f"ab{text}cd", f"{where} {text!r} inside", place)
