"""Export as a pytest module, or as an addition to an existing one.

Tests run on the installed package, which also isolates the command of the tests. Tests of one category and
with the same members are one parametrized function, with the names that their author gave them as ids.

A test that is not executable, not stable, or that detects nothing is skipped with the reason. A test whose
expectation was never met is an expected failure, with its source. Untrusted text is embedded safely.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.testgen.export.existing_module import ExistingModule, members_of
from peripety.testgen.export.literals import to_json_literal, to_literal, to_one_line, to_text_literal
from peripety.testgen.subjects.command.subject import expects_anything
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from peripety.testgen.export.suite import ExportedCommand, ExportedOutcome, ExportedSubject, ExportedSuite
    from peripety.testgen.types import TestCase


_LINE_WIDTH = 95
_MAX_COMMENT_LENGTH = 600
_MAX_FUNCTION_NAME_LENGTH = 60


def comment_lines(text: str) -> list[str]:
    """Return the lines of a comment, without indentation; a long text is shortened."""
    shown = textwrap.shorten(to_one_line(text), _MAX_COMMENT_LENGTH, placeholder=" ...")
    return [f"# {line}" for line in textwrap.wrap(shown, _LINE_WIDTH)]


def list_names(texts: Iterable[str], used: Collection[str] = ()) -> list[str]:
    """Return a unique test function name for each text.

    Args:
        texts: the texts.
        used: names that exist already.
    """
    made = dict.fromkeys(used)
    names = []
    for text in texts:
        base = (
            re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:_MAX_FUNCTION_NAME_LENGTH]
            or "unnamed"
        )
        name, number = f"test_{base}", 1
        while name in made:
            number += 1
            name = f"test_{base}_{number}"
        made[name] = None
        names.append(name)
    return names


_WORTHLESS_CODES = frozenset({"STUB", "TAUTOLOGY"})
_SKIPPED_STATUSES = frozenset({TestStatus.UNSTABLE, TestStatus.NOT_EXECUTABLE})
_USUAL_MEMBERS = frozenset({"arguments", "exit_code", "expected_output"})
_MAX_REASON_LENGTH = 2_000
_MAX_XFAIL_LENGTH = 300
_ENGINE_TEMPLATE = """\
# The subject of the tests. It can be replaced by another document of the same kind.
{name} = checking.{kind}(
    {document}
)
"""
_COMMAND_TEMPLATE = """\
# The subject of the tests. The variable SUBJECT names another directory, which is copied for each test.
{name} = checking.{kind}(
    {tested},
    directory={directory},
    environment={environment},  # names of variables to pass on, if set
    timeout_seconds={timeout!r},
)
"""


@dataclass(frozen=True, slots=True)
class WrittenModule:
    """A module.

    Attributes:
        content: its source.
        written: the number of tests that were written.
        known: the number of tests that the existing module has already.
    """

    content: bytes
    written: int
    known: int = 0


@dataclass(frozen=True, slots=True)
class _WrittenTest:
    """A test to write.

    Attributes:
        test: the test.
        outcome: the result of running it; None if it was not run.
        test_id: its name in the report of pytest, without the prefix of functions.
        members: the arguments of its check.
        skipped: the reason for skipping it; empty for none.
    """

    test: TestCase
    outcome: ExportedOutcome | None
    test_id: str
    members: Mapping[str, Any]
    skipped: str

    @property
    def xfail(self) -> str:
        """The reason for its expected failure; empty for none."""
        if self.skipped or self.outcome is None or self.outcome.status is not TestStatus.FAILED:
            return ""
        if self.test.source:
            reason = f"the subject contradicts its source: {self.test.source}"
        else:
            reason = "the expectation was never met: the subject or the test is wrong"
        return textwrap.shorten(to_one_line(reason), _MAX_XFAIL_LENGTH, placeholder=" ...")

    def comments(self) -> Iterator[str]:
        """Yield comments about the test."""
        is_described = self.test.body is not None and not self.test.source
        if is_described and not self.test.reasoning:
            yield from comment_lines(f"{self.test.test_id}: it describes what the subject does today.")
        else:
            yield from comment_lines(f"{self.test.test_id}: {self.test.reasoning}".removesuffix(": "))
            if self.test.source:
                yield from comment_lines(f"Source: {self.test.source}")
            elif is_described:
                yield "# It describes what the subject does today."
        if self.outcome is not None and self.outcome.status is TestStatus.FAILED:
            yield from comment_lines(f"It failed in the run: {self.outcome.observed}")


def write_pytest(suite: ExportedSuite, directory: str = "", append_to: bytes = b"") -> WrittenModule:
    """Return the module.

    Args:
        suite: the tests.
        directory: the absolute path of the directory of the module; empty if it is not known.
        append_to: a module to which the tests are added; empty for a new one.

    Raises:
        InvalidArgumentError: the module to extend cannot be read.
    """
    existing = ExistingModule(append_to)
    command = None if suite.tested is None else suite.tested.command
    argv = () if command is None else command.argv
    tests = [test for test in suite.tests if not existing.knows(test, argv)]
    known = len(suite.tests) - len(tests)
    if append_to and not tests:
        return WrittenModule(append_to, 0, known)
    writer = _ModuleWriter(replace(suite, tests=tuple(tests)), directory, existing)
    return WrittenModule(writer.append() if append_to else writer.write(), len(tests), known)


class _ModuleWriter:
    def __init__(self, suite: ExportedSuite, directory: str, existing: ExistingModule) -> None:
        self._suite = suite
        self._directory = directory
        self._existing = existing
        self._tests = _list_tests(suite)
        self._runs = suite.tested if any(not one.skipped for one in self._tests) else None
        self._subject_name = "SUBJECT"
        self._subject = "" if self._runs is None else self._subject_source(self._runs)

    def write(self) -> bytes:
        """Return a new module."""
        imports = "\n\n".join(filter(None, ("\n".join(group) for group in self._import_groups())))
        head = [
            '"""Tests generated by peripety; see docs/how-to/generate-tests.md."""',
            "\n".join(self._run_comment()),
            *filter(None, [imports, self._subject]),
        ]
        return _encode("\n\n\n".join(["\n\n".join(head), *self._functions()]) + "\n")

    def append(self) -> bytes:
        """Return the existing module with the tests at its end."""
        imports = [line for group in self._import_groups() for line in group]
        head = "\n".join([*self._run_comment(), *filter(None, [self._subject])])
        return self._existing.extended(imports, "\n\n\n".join([head, *self._functions()]) + "\n")

    def _run_comment(self) -> Iterator[str]:
        yield f"# Run {to_one_line(self._suite.run_id)}, task:"
        yield from comment_lines(self._suite.order.description)

    def _import_groups(self) -> Iterator[list[str]]:
        """Yield groups of imports, in order."""
        source = "\n\n".join((self._subject, *self._functions()))
        standard = {"os.environ": "import os", "Path(__file__)": "from pathlib import Path"}
        yield [line for sign, line in standard.items() if sign in self._subject]
        others = {"pytest.": "import pytest", "checking.": "from peripety.testgen import checking"}
        yield [
            line for sign, line in others.items() if re.search(rf"^[^#'\"]*\b{sign}", source, re.MULTILINE)
        ]

    # the subject

    def _subject_source(self, tested: ExportedSubject) -> str:
        """Return the definition of the subject; empty if the existing module has it."""
        source = self._define_subject(tested, "SUBJECT")
        same = self._existing.find_definition(source)
        if same is not None:
            self._subject_name = same
            return ""
        number = 1
        while self._subject_name in self._existing.names:
            number += 1
            self._subject_name = f"SUBJECT_{number}"
        return self._define_subject(tested, self._subject_name)

    def _define_subject(self, tested: ExportedSubject, name: str) -> str:
        command = tested.command
        if command is None:
            document = to_json_literal(tested.document, 4, _LINE_WIDTH)
            kind = tested.kind.value
            return _ENGINE_TEMPLATE.format(name=name, kind=kind, document=document).rstrip("\n")
        kind, arguments = "command", to_literal([*command.argv], 4, _LINE_WIDTH)
        if command.function:
            interpreter = f",\n    interpreter={arguments}" if command.argv else ""
            kind, arguments = "function", to_text_literal(command.function) + interpreter
        elif command.grpc:
            kind = "grpc_service"
            arguments += f',\n    address=os.environ.get("ADDRESS", ""),\n    port={command.port}'
        elif command.openapi:
            kind = "service"
            arguments += f",\n    openapi={to_text_literal(command.openapi)},\n    port={command.port}"
        return _COMMAND_TEMPLATE.format(
            name=name,
            kind=kind,
            tested=arguments,
            directory=_locate(command, self._directory),
            environment=to_literal(tuple(command.environment), 4, _LINE_WIDTH),
            timeout=command.timeout_seconds,
        ).rstrip("\n")

    # the functions

    def _functions(self) -> list[str]:
        groups: dict[Any, list[_WrittenTest]] = defaultdict(list)
        for one in self._tests:
            # A skipped test has no members, and stays alone.
            groups[one.test_id if one.skipped else (one.test.category, *one.members)].append(one)
        titles = _group_titles([*groups.values()])
        names = list_names(titles, self._existing.names)
        return [
            "\n".join(self._function_lines(name, group))
            for name, group in zip(names, groups.values(), strict=True)
        ]

    def _function_lines(self, name: str, group: list[_WrittenTest]) -> Iterator[str]:
        first, *others = group
        if others:
            yield from self._parametrized_lines(name, group)
            return
        if first.xfail:
            yield f"@pytest.mark.xfail(strict=True, reason={to_text_literal(first.xfail)})"
        yield f"def {name}():"
        for line in first.comments():
            yield f"    {line}"
        if first.skipped:
            yield f"    pytest.skip({to_text_literal(first.skipped)})"
            return
        yield f"    {self._subject_name}.check("
        for member, value in first.members.items():
            yield f"        {member}={to_literal(value, 8, _LINE_WIDTH)},"
        yield "    )"

    def _parametrized_lines(self, name: str, group: list[_WrittenTest]) -> Iterator[str]:
        members = [*group[0].members]
        names = tuple(members) if len(members) > 1 else members[0]
        yield "@pytest.mark.parametrize("
        yield f"    {to_literal(names, 4, _LINE_WIDTH)},"
        yield "    ["
        for one in group:
            yield from (f"        {line}" for line in one.comments())
            yield "        pytest.param("
            for value in one.members.values():
                yield f"            {to_literal(value, 12, _LINE_WIDTH)},"
            yield f"            id={to_text_literal(one.test_id)},"
            if one.xfail:
                reason = to_text_literal(one.xfail)
                yield f"            marks=pytest.mark.xfail(strict=True, reason={reason}),"
            yield "        ),"
        yield "    ],"
        yield ")"
        yield f"def {name}({', '.join(members)}):"
        arguments = ", ".join(f"{member}={member}" for member in members)
        yield f"    {self._subject_name}.check({arguments})"


def _encode(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


def _list_tests(suite: ExportedSuite) -> list[_WrittenTest]:
    names = list_names(test.name or test.test_id for test in suite.tests)
    return [
        _WrittenTest(
            test,
            suite.outcomes.get(test.test_id),
            name.removeprefix("test_"),
            members_of(test),
            _skip_reason(test, suite),
        )
        for name, test in zip(names, suite.tests, strict=True)
    ]


def _group_titles(groups: list[list[_WrittenTest]]) -> list[str]:
    """Return a text for each group: its category, and the members that the first one of it does not have."""
    first_members: dict[str, Mapping[str, Any]] = {}
    titles = []
    for first, *others in groups:
        category = first.test.category
        if not others:
            name = first.test_id
            titles.append(name if name.startswith(category) else f"{category}_{name}")
            continue
        known = first_members.setdefault(category, first.members)
        own = (one for one in first.members if one not in known and one not in _USUAL_MEMBERS)
        titles.append("_".join([category, *own]))
    return titles


def _locate(command: ExportedCommand, directory: str) -> str:
    """Return the expression of the directory of a command, relative to the module if both have a parent."""
    where = command.working_directory
    if where is None:
        return 'os.environ.get("SUBJECT")'
    default = to_text_literal(where)
    if directory and len(Path(os.path.commonpath([where, directory])).parts) > 1:
        relative = os.path.relpath(where, directory)
        default = "Path(__file__).parent"
        if relative != os.curdir:
            default += f" / {to_text_literal(Path(relative).as_posix())}"
    return f'os.environ.get("SUBJECT", {default})'


def _skip_reason(test: TestCase, suite: ExportedSuite) -> str:
    """Return the reason for skipping a test, or an empty text."""
    outcome = suite.outcomes.get(test.test_id)
    if suite.tested is None or test.body is None:
        return _describe_test("only described in words", test)
    if outcome is not None:
        for finding in outcome.findings:
            if finding.code in _WORTHLESS_CODES or outcome.status in _SKIPPED_STATUSES:
                return f"{finding.code}: {finding.message}"
    is_command = suite.tested.kind is SubjectKind.COMMAND and "requests" not in test.body
    if is_command and not expects_anything(test):
        return _describe_test("no expected output or exit code", test)
    return ""


def _describe_test(why: str, test: TestCase) -> str:
    expected = "" if test.expected_output is None else f"; expected: {test.expected_output}"
    return f"{why}: {test.input}{expected}"[:_MAX_REASON_LENGTH]
