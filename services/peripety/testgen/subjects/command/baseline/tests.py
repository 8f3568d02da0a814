"""Baseline tests of a Python program.

Tests with a source come from examples of the documentation and from laws. Those that fail come first, because
they show a defect. All other tests describe the current behaviour of calls that differ in what they show.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.baseline.calls import CandidateCalls, choose, find_commands
from peripety.testgen.subjects.command.baseline.expectations import (
    holding_laws,
    iterate_documented_calls,
    iterate_documented_commands,
    iterate_laws,
    iterate_readme_calls,
)
from peripety.testgen.subjects.command.baseline.values import SourceFunctions, find_values
from peripety.testgen.subjects.command.python_program import ProgramInput
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.testgen.subjects.command.baseline.calls import CandidateCall, CommandForm
    from peripety.testgen.subjects.command.baseline.expectations import (
        DocumentedCall,
        DocumentedCommand,
        LawCall,
    )
    from peripety.testgen.subjects.command.python_program import ProgramInterface, PythonProgram, SurveyedCall


_MAX_DOCUMENTED = 48
_MAX_TESTS_OF_LAW = 3
_MAX_SURVEYED_LAWS = 160
_MAX_OBSERVED = 192
# The example does not run in its module alone.
_UNRELATED_PATTERN = re.compile(
    r"(Name|Import|ModuleNotFound|Syntax|Attribute|FileNotFound|NotADirectory|Permission|Connection|Timeout)Error"
    r"|(socket\.)?gaierror|URLError"
    r"|TypeError: .*\(\) (missing|takes|got an unexpected) ",
)
_FILE_PATTERN = re.compile(r"[\w./~-]*\w\.[A-Za-z]\w{0,4}")
_MAX_NAME_CHARACTERS = 60
_MAX_NAME_OF_INPUT = 24
_EMPTY_NAMES = {"''": "empty_text", '""': "empty_text", "[]": "empty_list", "{}": "empty_dict"}
_EMPTY_PATTERN = re.compile(r"(?<![\w'\"])(?:''|\"\"|\[\]|\{\})(?!['\"])")
_NEGATIVE_PATTERN = re.compile(r"(?<![\w)\]'\"-])-(?=\.?\d)")


DEFECT_ERRORS = frozenset(
    {"AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "RecursionError", "TypeError",
     "UnboundLocalError"}
)  # fmt: skip
"""Exceptions that no program intends, if they are not raised by a statement: no test expects them."""


class ProgramTests:
    """The baseline tests of a program.

    Args:
        program: the program.
        files: names of files in its directory.
        seconds: the limit of the processor time for trying calls, about.
    """

    def __init__(self, program: PythonProgram, files: Sequence[str], seconds: float) -> None:
        self._program = program
        self._files = files
        self._seconds = seconds
        self._interface = interface = program.find_interface()
        self._functions = SourceFunctions(program.modules)
        self._documented = [
            *iterate_documented_calls(program.modules),
            *chain.from_iterable(iterate_readme_calls(text, package) for package, text in interface.readmes),
        ]
        readme = "\n".join(text for _, text in interface.readmes)
        self._values = find_values(self._functions, interface.values, readme)
        self._commands = [*iterate_documented_commands(readme, interface.names)]

    def __iter__(self) -> Iterator[DraftTest]:
        """Yield all tests, the most important ones first."""
        yield from (test for test, is_met in self.sourced if not is_met)
        for command in self._runnable_commands():
            if not self._program.is_limited or self._reaches_changes(command):
                yield command_test(command)
        observed = islice(self._observed_tests(), _MAX_OBSERVED)
        met = (test for test, is_met in self.sourced if is_met)
        rows = zip_longest(observed, observed, met)
        yield from (test for row in rows for test in row if test is not None)

    def _runnable_commands(self) -> Iterator[DocumentedCommand]:
        """Yield the commands of READMEs that do not fail for a file that only their author has."""
        given = [ProgramInput(command.arguments) for command in self._commands]
        results = self._program.survey_calls(self._interface, given, self._seconds / 8) if given else []
        for command, result in zip_longest(self._commands, results):
            named = (word for word in command.arguments if _FILE_PATTERN.fullmatch(word))
            if result is None or result.exit_code == 0 or all(name in self._files for name in named):
                yield command

    def _reaches_changes(self, command: DocumentedCommand) -> bool:
        lines = self._program.executed_lines(ProgramInput(command.arguments))
        return self._program.reaches_changes(lines)

    @cached_property
    def sourced(self) -> Sequence[tuple[DraftTest, bool]]:
        """The tests of examples and laws, each with True if the program meets it."""
        examples = ProgramExamples(self._program, self._interface, self._seconds / 4)
        laws = [*iterate_laws(self._program.modules, self._documented, self._values)]
        return [*examples.documented_tests(self._documented), *examples.law_tests(laws)]

    def _observed_tests(self) -> Iterator[DraftTest]:
        """Yield tests without an expectation, for calls that differ in what they show."""
        forms = find_commands(self._interface.commands, self._functions.trees.values(), self._files)
        arguments = (command.arguments for command in self._commands)
        calls = CandidateCalls(
            forms,
            self._functions,
            self._values,
            _documented_arguments(forms, self._documented, arguments),
            lambda given: self._program.survey_calls(self._interface, given, self._seconds / 4),
        )
        candidates = [
            one
            for one in calls.find()
            if one.depends_on_changes(self._program)
            and (one.result is None or one.result.accident not in DEFECT_ERRORS)
        ]
        yield from (observed_test(candidates[index]) for index in choose(candidates))


class ProgramExamples:
    """Tests with a source, each with True if the program meets it.

    Args:
        program: the program.
        interface: its interface.
        seconds: the limit of the processor time for trying examples, about.
    """

    def __init__(self, program: PythonProgram, interface: ProgramInterface, seconds: float) -> None:
        self._program = program
        self._interface = interface
        self._seconds = seconds

    def documented_tests(self, documented: Sequence[DocumentedCall]) -> Iterator[tuple[DraftTest, bool]]:
        """Yield the tests of examples that run in their modules."""
        kept: list[tuple[DraftTest, bool]] = []
        for example, result in self._survey_examples(documented):
            shown = result.stdout.decode(errors="replace").rstrip()
            is_met = _is_met(example, result)
            is_unrelated = not is_met and _UNRELATED_PATTERN.match(shown) is not None
            is_limited_out = not self._program.reaches_changes(result.lines)
            if result.exit_code is not None and not is_unrelated and not is_limited_out:
                test = call_test(example.function, example, example.shown, example.expected, "correctness")
                kept.append((test, is_met))
        yield from _balanced(kept, _MAX_DOCUMENTED)

    def _survey_examples(
        self, documented: Sequence[DocumentedCall]
    ) -> Iterator[tuple[DocumentedCall, SurveyedCall]]:
        """Yield the examples with their results, after all statements before them if only so they are met."""
        found = [*zip(documented, self._survey(documented), strict=False)]
        longer = {
            example: replace(example, call=example.whole)
            for example, result in found
            if example.whole is not None and not _is_met(example, result)
        }
        results = dict(zip(longer, self._survey([*longer.values()]), strict=False))
        for example, result in found:
            other = results.get(example)
            if other is None:
                yield example, result
            elif other.exit_code is not None and (_is_met(example, other) or example.is_incomplete):
                yield longer[example], other
            elif not example.is_incomplete:
                yield example, result

    def law_tests(self, laws: Sequence[LawCall]) -> Iterator[tuple[DraftTest, bool]]:
        """Yield the tests of laws that hold for most values."""
        some = laws[:_MAX_SURVEYED_LAWS]
        results = {
            law.call: result.stdout.strip() == b"True"
            for law, result in zip(some, self._survey(some), strict=False)
            if result.stdout.strip() in {b"True", b"False"} and self._program.reaches_changes(result.lines)
        }
        kept = holding_laws((law, results[law.call]) for law in some if law.call in results)
        by_law: dict[str, list[tuple[DraftTest, bool]]] = defaultdict(list)
        for law in kept:
            test = call_test("law", law, law.call.code, "True", "correctness")
            by_law[law.law].append((test, results[law.call]))
        for tests in by_law.values():
            yield from _balanced(tests, _MAX_TESTS_OF_LAW)

    def _survey(self, calls: Sequence[DocumentedCall | LawCall]) -> list[SurveyedCall]:
        given = [ProgramInput(call=one.call) for one in calls]
        return self._program.survey_calls(self._interface, given, self._seconds) if given else []


def _is_met(example: DocumentedCall, result: SurveyedCall) -> bool:
    return result.stdout.decode(errors="replace").rstrip() == example.expected.rstrip()


def _balanced(tests: Sequence[tuple[DraftTest, bool]], limit: int) -> Iterator[tuple[DraftTest, bool]]:
    """Yield all tests that are not met, and of the others at most a number, evenly spread."""
    met = [test for test in tests if test[1]]
    step = max(1, -(-len(met) // limit))
    yield from (test for test in tests if not test[1])
    yield from met[::step]


def call_test(
    name: str,
    example: DocumentedCall | LawCall,
    shown: str,
    expected: str,
    category: str,
) -> DraftTest:
    """Return the test of an example or a law.

    Args:
        name: the beginning of its name.
        example: its call and its source.
        shown: the call for display.
        expected: what the call prints.
        category: its category.
    """
    body: dict[str, Any] = {
        "arguments": [],
        "stdin": "",
        "exit_code": None,
        "call": {"module": example.call.module, "code": example.call.code},
    }
    last = name.rpartition(".")[2]
    return DraftTest(
        to_name(shown if last in shown else f"{last} {shown}"),
        f"{example.call.module}: {shown}",
        expected,
        "the program does what its source requires",
        1.0,
        body,
        category,
        source=example.citation,
    )


def command_test(command: DocumentedCommand) -> DraftTest:
    """Return the test of a command in a README."""
    body = {
        "arguments": [*command.arguments],
        "stdin": "",
        "exit_code": 0 if command.expected is None else None,
    }
    return DraftTest(
        to_name(" ".join(command.arguments)),
        json.dumps([*command.arguments], ensure_ascii=False),
        command.expected,
        "the program does what its documentation shows",
        1.0,
        body,
        "correctness",
        source=command.citation,
    )


def observed_test(candidate: CandidateCall) -> DraftTest:
    """Return the test of a call, without an expectation."""
    given = candidate.given
    body: dict[str, Any] = {
        "arguments": [*given.arguments],
        "stdin": given.stdin.decode(),
        "exit_code": None,
    }
    if given.files:
        body["files"] = [{"path": name, "content": content.decode()} for name, content in given.files]
    failed = candidate.result is not None and candidate.result.exit_code != 0
    shown = json.dumps([*given.arguments], ensure_ascii=False)
    for name, content in given.files:
        shown += f" with the file {name}: {content.decode()!r}"
    if given.stdin:
        shown += f" with the input {given.stdin.decode()!r}"
    name = to_name(" ".join(given.arguments)) if given.arguments else ""
    if given.stdin:
        name += f"_input_{to_name(given.stdin.decode())[:_MAX_NAME_OF_INPUT]}"
    if failed and candidate.result is not None:
        name += f"_exit_code_{candidate.result.exit_code}"
    name = name.strip("_") or "no_arguments"
    return DraftTest(name, shown, None, "", 1.0, body, "boundary" if failed else "correctness")


def to_name(text: str) -> str:
    """Return a short name in lower_snake_case, with words for empty values and negative numbers."""
    told = _EMPTY_PATTERN.sub(lambda found: f" {_EMPTY_NAMES[found[0]]} ", text)
    told = _NEGATIVE_PATTERN.sub(" minus ", told)
    words = "".join(letter if letter.isalnum() else " " for letter in told).split()
    name = "_".join(words).lower()
    if len(name) > _MAX_NAME_CHARACTERS:
        # A name ends with a whole word.
        name = name[: _MAX_NAME_CHARACTERS + 1].rpartition("_")[0] or name[:_MAX_NAME_CHARACTERS]
    return name or "empty"


def _documented_arguments(
    forms: Iterable[CommandForm],
    documented: Iterable[DocumentedCall],
    commands: Iterable[tuple[str, ...]],
) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the arguments of examples by the path of the command that their function names."""
    found: dict[tuple[str, ...], dict[tuple[str, ...], None]] = defaultdict(dict)
    paths = sorted((form.path for form in forms), key=len, reverse=True)
    for arguments in commands:
        path = next((path for path in paths if arguments[: len(path)] == path), None)
        if path is not None:
            found[path][arguments[len(path) :]] = None
    for example in documented:
        name = _squeeze(example.function.rpartition(".")[2])
        values = _constants_of(example.shown)
        for path in paths:
            words = [*map(_squeeze, path)]
            is_named = all(len(word) > 2 and word in name for word in words)  # noqa: PLR2004 - short words are everywhere
            if values and is_named:
                found[path][values] = None
    return {path: [*rows] for path, rows in found.items()}


def _squeeze(text: str) -> str:
    return text.lower().replace("_", "").replace("-", "")


def _constants_of(shown: str) -> tuple[str, ...]:
    """Return the constants of a call as arguments, in their order."""
    nodes = [*ast.walk(ast.parse(shown))]
    negated = {
        id(node.operand) for node in nodes if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    }
    constants = sorted(
        (node for node in nodes if isinstance(node, ast.Constant)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    return tuple(
        f"-{node.value}" if id(node) in negated else str(node.value)
        for node in constants
        if isinstance(node.value, str | int | float) and not isinstance(node.value, bool)
    )
