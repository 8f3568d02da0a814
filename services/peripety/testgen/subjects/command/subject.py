"""Command subject, tested as a black box: arguments and standard input in, exit code and output out.

For a Python or JavaScript program, tests cover lines and kill mutants. For any other program, only its output
can be checked. Values of environment variables are redacted in the output.
"""

from __future__ import annotations

import json
import platform
import re
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cache, cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError, Finding, InvalidArgumentError
from peripety.testgen.subjects.command.baseline.script_tests import ScriptTests
from peripety.testgen.subjects.command.baseline.tests import DEFECT_ERRORS, ProgramTests, command_test
from peripety.testgen.subjects.command.javascript_program import (
    INSTRUMENTER_MISSING,
    JAVASCRIPT_PROBE,
    MIN_JAVASCRIPT_MEMORY_BYTES,
    JavaScriptProgram,
    find_instrumenter,
    parse_javascript_command,
)
from peripety.testgen.subjects.command.python_program import (
    MEASURING_PATHS,
    ProgramInput,
    PythonCall,
    PythonProgram,
    parse_command,
    run_python_call,
)
from peripety.testgen.subjects.command.sandbox import MAX_PROGRAM_MUTANTS, Sandbox
from peripety.testgen.subjects.subject import NO_LINES, BodySchema, RunResult, SubjectKind, SubjectTarget
from peripety.testgen.types import DraftTest, TaskContext, TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.subjects.command.python_program import ProgramChanges, ProgramCommand
    from peripety.testgen.subjects.command.sandbox import ProcessOutput
    from peripety.testgen.types import TestCase


MIN_REDACTED_LENGTH = 6
"""Minimum length of a redacted value; shorter values are usually switches, and occur everywhere."""

_SECRET_NAME_PATTERN = re.compile(r"secret|credential|passw|token|key|private|auth", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return True if the name of a variable indicates a secret."""
    return _SECRET_NAME_PATTERN.search(name) is not None


class EnvironmentRedactor:
    """Redactor that replaces values of variables by their names.

    Args:
        environment: the variables; short values count only if the name indicates a secret.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        names = {
            value.encode(errors="surrogateescape"): name.encode()
            for name, value in environment.items()
            if len(value) >= MIN_REDACTED_LENGTH or (value and is_secret_name(name))
        }
        self._names = names
        # Longer values come first, because they may contain shorter ones.
        longest = sorted(names, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest))) if names else None

    def redact(self, text: bytes) -> bytes:
        """Return a text without the values of the variables."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: b"$" + self._names[found[0]], text)


def _lines_around(functions: Sequence[tuple[int, int]], line: int) -> tuple[int, int]:
    """Return the lines of the innermost function around a line, or the lines near it."""
    around = [(first, last) for first, last in functions if first <= line <= last]
    first, last = max(around, default=(1, sys.maxsize))
    if last - first < _MAX_FUNCTION_LINES:
        return first, last
    return max(first, line - _LINES_AROUND), min(last, line + _LINES_AROUND)


def _find_spans(numbers: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each series of neighbours."""
    firsts = sorted(number for number in numbers if number - 1 not in numbers)
    lasts = sorted(number for number in numbers if number + 1 not in numbers)
    return zip(firsts, lasts, strict=True)


DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024
_MAX_SOURCE_CHARACTERS = 60 * 1024
"""Limit of the sources for the author, who should see what the tests run."""

_MAX_EXCERPT_CHARACTERS = 12_000
_MAX_FUNCTION_LINES = 120
"""Functions with more lines are shown in part."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINES_AROUND = 12
"""Lines shown before and after a place outside of functions, or in a long one."""

_MAX_SHOWN_CHANGES = 400
_MAX_OBSERVED_BYTES = 4 * 1024
_ADDRESS_PATTERN = re.compile(r" at 0x[0-9a-f]{6,}")
_MAX_ARGUMENTS = 100
_MAX_ARGUMENT_BYTES = 64 * 1024
_MAX_FILES = 20
_MAX_FILE_BYTES = 32 * 1024
_BODY_SCHEMA = {
    "type": "object",
    "description": "One run of the command.",
    "properties": {
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Arguments after those of the command.",
        },
        "stdin": {"type": "string", "description": "The standard input; may be empty."},
        "exit_code": {
            "type": ["integer", "null"],
            "description": "The required exit code; null for any.",
        },
        "stderr": {
            "type": ["string", "null"],
            "description": "Text that standard error must contain; empty if it must be empty; null for any.",
        },
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
                "additionalProperties": False,
            },
            "description": "Text files to write before the run, in the working directory; usually empty.",
        },
        "expected_files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": ["string", "null"]}},
                "required": ["path", "content"],
                "additionalProperties": False,
            },
            "description": "Required files after the run; content null for a file that must not exist.",
        },
    },
    "required": ["arguments", "stdin", "exit_code", "stderr", "files", "expected_files"],
    "additionalProperties": False,
}
_BODY_FORM = BodySchema(_BODY_SCHEMA)
_USUAL_CALLS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("nothing", (), "existence"),
    ("help", ("--help",), "boundary"),
    ("unknown_option", ("--no-such-option",), "boundary"),
)
_MAX_EXPECTED_CHARACTERS = 4_000
_MAX_EXPECTED_LINE = 500
"""Maximum length of a line that a test expects."""

_UNREADABLE_PATTERN = re.compile(r"[^\n\t\r\x1b\x20-\x7e\x80-\uffff\U00010000-\U0010ffff]|\ufffd")
_TRACEBACK_SIGN = "Traceback (most recent call last):"
_FRAME_PATTERN = re.compile(r'^  File "[^\n]*", line \d+, in [^\n]*\n(?:    ([^\n]*)\n)?', re.MULTILINE)
_SURVEY_SECONDS = 24.0
"""Time for trying calls, in seconds; about half of the time that baseline tests have by default."""

_EXPECTED_OUTPUT_TEXT = "standard output of the command, without white space at its end"


class CommandSubject:
    """A command.

    Args:
        argv: the program and its first arguments.
        working_directory: copied for each run; None for an empty one.
        environment: environment variables. Their values are secret; in the output, they are replaced by the
            names.
        timeout_seconds: time limit of a run.
        memory_bytes: memory limit of a run.
        task: the description of the task, which may name installed packages to measure.
        readable: more paths that the command may read.
        unfenced: True to run the command without a fence on a machine that supports none.
        measured: False to run tests only, without targets and mutants.
        changes: the lines to test and to measure; None for whole files.

    Raises:
        FailedPreconditionError: the machine supports no fence, or no line that is measured has changed.
        InvalidArgumentError: the directory cannot be copied for each run, or the program is not valid Python.
    """

    kind = SubjectKind.COMMAND
    context = TaskContext.BENCHMARK
    body_schema: Mapping[str, Any] = _BODY_SCHEMA
    _is_service = False

    def __init__(
        self,
        argv: Sequence[str],
        working_directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        task: str = "",
        readable: Sequence[Path] = (),
        *,
        unfenced: bool = False,
        measured: bool = True,
        changes: ProgramChanges | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._directory = working_directory
        self._timeout = timeout_seconds
        given = environment or {}
        self._redactor = EnvironmentRedactor(given)
        variables = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **given}
        self._started = started = self._find_program(variables)
        named = () if started is None else (*started.interpreter, started.program)
        javascript = None if started else parse_javascript_command(self._argv, working_directory, variables)
        instrumenter: Path | None = None
        if javascript is not None:
            instrumenter = find_instrumenter(working_directory) if measured else None
            named = (javascript.interpreter, javascript.program)
            variables = {"NODE_OPTIONS": f"--max-old-space-size={memory_bytes >> 20}", **variables}
            memory_bytes = max(memory_bytes, MIN_JAVASCRIPT_MEMORY_BYTES)
        self._sandbox = Sandbox(
            (*named, *self._argv),
            working_directory,
            variables,
            timeout_seconds,
            memory_bytes,
            readable=[*readable, *MEASURING_PATHS, JAVASCRIPT_PROBE, *filter(None, [instrumenter])],
            unfenced=unfenced,
            is_serving=self._is_service,
        )
        self._program: PythonProgram | None = None
        self._script: JavaScriptProgram | None = None
        if started is not None and measured:
            program = PythonProgram(started, self._sandbox, timeout_seconds, task, changes)
            self._program = program if program.modules else None
        elif javascript is not None and measured and not self._is_service:
            script = JavaScriptProgram(javascript, self._sandbox, timeout_seconds, instrumenter, changes)
            self._script = script if script.modules else None
        self.unmutated = INSTRUMENTER_MISSING if self._script and instrumenter is None else ""
        self.changed_since = "" if changes is None else changes.revision
        if changes is not None:
            self._check_changes(changes)

    @property
    def _measured(self) -> PythonProgram | JavaScriptProgram | None:
        """The program whose lines are measured; None if none are."""
        return self._program or self._script

    def _check_changes(self, changes: ProgramChanges) -> None:
        program = self._measured
        if program is None:
            raise InvalidArgumentError(
                ".subject.command.changes: the lines of this command are not measured, so tests cannot be"
                " limited to changed ones; leave out the changes",
                code="LINES_NOT_MEASURED",
            )
        if not any(module.lines for module in program.modules.values()):
            raise FailedPreconditionError(
                ".subject.command.changes: no line of the measured files has changed since"
                f" {changes.revision}; no test is needed, or name another revision",
                code="NOTHING_CHANGED",
            )

    def _find_program(self, variables: Mapping[str, str]) -> ProgramCommand | None:
        """Return the Python program that the command starts; None for any other command."""
        return parse_command(self._argv, self._directory, variables)

    @property
    def is_fenced(self) -> bool:
        """True if a fence isolates the command."""
        return self._sandbox.is_fenced

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The command, its calling convention, and its source if it is known."""
        material: dict[str, Any] = {"command": [*self._argv], "expected_output": _EXPECTED_OUTPUT_TEXT}
        if self._measured is not None:
            material |= self._source_material(self._measured)
        return material

    def _source_material(self, program: PythonProgram | JavaScriptProgram) -> dict[str, Any]:
        """Return the sources, most executed first, and the names of the files that are too long together."""
        executed: Counter[str] = Counter()
        # The order of one source needs no runs, and a library is not run by itself.
        is_ordered = len(program.modules) == 1 or program.command.is_library
        for arguments in () if is_ordered else ((), ("--help",)):
            for key, lines in (program.executed_lines(ProgramInput(arguments)) or {}).items():
                executed[key] += len(lines)
        order = sorted(program.modules, key=lambda one: -executed[one])
        order.sort(key=lambda one: not program.affected_lines.get(one))
        left = _MAX_SOURCE_CHARACTERS
        sources: list[dict[str, str]] = []
        omitted: list[str] = []
        for key in order:
            module = program.modules[key]
            if len(module.text) <= left or not sources:
                sources.append({"file": module.name, "text": module.text[:left]})
                left -= len(sources[-1]["text"])
            else:
                omitted.append(module.name)
        material: dict[str, Any] = {"sources": sources} | ({"omitted_sources": omitted} if omitted else {})
        if self.changed_since:
            shown = (
                f"{module.name}:{line}: {module.line_text(line)}"
                for module in (program.modules[key] for key in order)
                for line in module.lines
            )
            material |= {"changed_since": self.changed_since, "changed": [*islice(shown, _MAX_SHOWN_CHANGES)]}
        return material

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return the functions around some lines, those with the most lines first while they fit."""
        modules = {} if self._measured is None else {one.name: one for one in self._measured.modules.values()}
        parts = Counter[tuple[str, int, int]]()
        for path in paths:
            name, _, line = path.removeprefix("/").rpartition("/")
            if name in modules and line.isdecimal():
                parts[name, *_lines_around(modules[name].function_lines, int(line))] += 1
        texts = {name: _LINE_END.split(module.text) for name, module in modules.items()}
        left = _MAX_EXCERPT_CHARACTERS
        chosen: dict[str, set[int]] = {}
        for (name, first, last), _ in parts.most_common():
            lines = chosen.setdefault(name, set())
            added = {*range(first, min(last, len(texts[name])) + 1)} - lines
            size = sum(len(texts[name][line - 1]) + 1 for line in added)
            if size <= left:
                lines |= added
                left -= size
        return [
            {"file": name, "line": first, "text": "\n".join(texts[name][first - 1 : last])}
            for name, lines in chosen.items()
            for first, last in _find_spans(lines)
        ]

    @cached_property
    def targets(self) -> Sequence[SubjectTarget]:
        """The lines of the measured files."""
        program = self._measured
        if program is None:
            return ()
        return tuple(
            SubjectTarget(
                "line",
                f"/{module.name}/{line}",
                f"execute line {line}: {module.line_text(line)}",
            )
            for module in program.modules.values()
            for line in module.lines
        )

    @property
    def unmeasured_lines(self) -> Mapping[str, int]:
        """The numbers of lines of imported packages that are not measured."""
        return NO_LINES if self._measured is None else self._measured.unmeasured_lines

    @cached_property
    def mutants(self) -> Sequence[Mutant]:
        """Mutants of the measured files; a sample if there are too many."""
        return self._read_mutants(0, MAX_PROGRAM_MUTANTS)

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:
        """Return mutants beyond the sample."""
        return self._read_mutants(known, count)

    def _read_mutants(self, start: int, count: int) -> Sequence[Mutant]:
        return () if self._measured is None else (*self._measured.iterate_mutants(start, count),)

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return arguments that cannot be passed to a process, and a call without a program."""
        if body.get("call") and self._started is None:
            return (
                Finding(
                    "NOT_EXECUTABLE", "/call", "calls a function, and the command is not a Python program"
                ),
            )
        return _BODY_FORM.validate_body(body) or [*_argument_problems(body), *_file_problems(body)]

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return `STUB` for a test without any expectation."""
        if not expects_anything(test):
            return (Finding("STUB", "", "no expected output or exit code; add one of them"),)
        return ()

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the arguments, the standard input and the files, or the call."""
        given = {"arguments": [*(body.get("arguments") or ())], "stdin": body.get("stdin") or ""}
        return given | {name: body[name] for name in ("call", "files") if body.get(name)}

    def run(self, test: TestCase) -> RunResult:
        """Run the command once."""
        body = test.body or {}
        output = self._run_command(body)
        observed = self._format_output(output)
        if output.start_error:
            finding = Finding("NOT_EXECUTABLE", "", f"the command cannot be started: {output.start_error}")
            return RunResult(TestStatus.NOT_EXECUTABLE, observed, "", (finding,))
        findings = (*self._unmet_expectations(test, output),)
        status = TestStatus.FAILED if findings else TestStatus.PASSED
        covered = self._covered_targets(body, output) if status is TestStatus.PASSED else frozenset[str]()
        return RunResult(status, observed, self._digest(test, output), findings, covered)

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that the test reaches and does not pass on.

        None of them counts if the program itself does not pass in the way that mutants are run.
        """
        program = self._measured
        if program is None or not among:
            return frozenset()
        body = test.body or {}
        reached = program.reached_mutants(self._executed_lines(body), among)
        killed = set()
        for mutant_id, output in self._run_mutants(body, reached) if reached else ():
            is_met = not any(self._unmet_expectations(test, output))
            if mutant_id is None and not is_met:
                return frozenset()
            if mutant_id is not None and not is_met:
                killed.add(mutant_id)
        return frozenset(killed)

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that compile to identical bytecode."""
        program = self._measured
        return frozenset() if program is None else frozenset(filter(program.is_equivalent, among))

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield calls without arguments, for help and with an unknown option, and those of a Python program.

        A test without a source expects the current behaviour of the command.
        """
        for name, arguments, category in _USUAL_CALLS:
            body = {"arguments": [*arguments], "stdin": "", "exit_code": None}
            if self.changed_since and not self._reaches_changes(body):
                continue
            yield from self._described(DraftTest(name, json.dumps(arguments), body=body, category=category))
        if self._script is not None:
            for command in self._script.documented_commands():
                draft = command_test(command)
                if not self.changed_since or self._reaches_changes(draft.body or {}):
                    yield draft
            shown = self._run_command({"arguments": ["--help"]})
            text = (shown.stdout + shown.stderr).decode(errors="replace")
            for draft in ScriptTests(self._script, self._list_files(), text, 2 * _SURVEY_SECONDS):
                yield from self._described(draft)
        if self._program is not None:
            for draft in ProgramTests(self._program, self._list_files(), _SURVEY_SECONDS):
                yield from (draft,) if draft.source else self._described(draft)

    def _reaches_changes(self, body: Mapping[str, Any]) -> bool:
        """Return True if a run depends on the changed lines; True if whole files are measured."""
        program = self._measured
        return program is None or program.reaches_changes(self._executed_lines(body))

    def _list_files(self) -> list[str]:
        """Return the names of files in the directory, which may be arguments."""
        if self._directory is None:
            return []
        with suppress(OSError):
            names = (path.name for path in self._directory.iterdir() if path.is_file())
            return sorted(name for name in names if not name.endswith((".py", ".pyc")))
        return []

    def _described(self, draft: DraftTest) -> Iterator[DraftTest]:
        """Yield a test with the current behaviour as its expectation.

        None is yielded if the command does not end, for an exception that is a defect of the program, or if
        the output has an address in memory, or bytes that are not text. An output with facts about this
        machine, or one that is too long to read, is not expected.
        """
        output = self._run_command(draft.body or {})
        if output.exit_code == -signal.SIGKILL:
            output = self._run_command(draft.body or {})  # the behaviour is not that of a killed process
        shown = output.stdout.decode(errors="replace")
        if output.exit_code is None or output.start_error or _ADDRESS_PATTERN.search(shown):
            return
        if _UNREADABLE_PATTERN.search(shown) or _is_defect(output):
            return
        is_long = len(shown) > _MAX_EXPECTED_CHARACTERS or (
            max(map(len, shown.splitlines()), default=0) > _MAX_EXPECTED_LINE
        )
        is_of_machine = any(fact in shown for fact in _machine_facts())
        is_call = bool((draft.body or {}).get("call"))
        if (is_long or is_of_machine) and is_call:
            return
        yield replace(
            draft,
            expected_output=None if is_long or is_of_machine else shown,
            confidence=1.0,
            # The output of a call shows its exception.
            body={**(draft.body or {}), "exit_code": None if is_call else output.exit_code},
        )

    def _input_of(self, body: Mapping[str, Any]) -> ProgramInput:
        return input_of(body)

    def _unmet_expectations(self, test: TestCase, output: ProcessOutput) -> Iterator[Finding]:
        """Yield the unmet expectations."""
        return unmet_expectations(test, output)

    def _format_output(self, output: ProcessOutput) -> str:
        """Return the output for display."""
        return _format_output(output)

    def _digest(self, test: TestCase, output: ProcessOutput) -> str:  # noqa: ARG002 - the same for all tests
        """Return a digest of everything that is the same in each run of a stable test."""
        return _output_digest(output)

    def _run_command(self, body: Mapping[str, Any]) -> ProcessOutput:
        given = self._input_of(body)
        if given.call is not None and self._started is not None:
            return self._redact(run_python_call(self._started, self._sandbox, given))
        argv = (*self._argv, *given.arguments)
        return self._redact(self._sandbox.run(argv, given.stdin, dict(given.files), given.read_back))

    def _run_mutants(
        self,
        body: Mapping[str, Any],
        mutant_ids: Sequence[str],
    ) -> Iterator[tuple[str | None, ProcessOutput]]:
        """Yield the output of the program, with None, and those of mutants."""
        assert self._measured is not None  # noqa: S101 - only measured programs have mutants
        for mutant_id, output in self._measured.run_mutants(self._input_of(body), mutant_ids):
            yield mutant_id, self._redact(output)

    def _redact(self, output: ProcessOutput) -> ProcessOutput:
        stdout, stderr = map(self._redactor.redact, (output.stdout, output.stderr))
        files = {name: data and self._redactor.redact(data) for name, data in output.files.items()}
        return replace(output, stdout=stdout, stderr=stderr, files=files)

    def _covered_targets(self, body: Mapping[str, Any], output: ProcessOutput) -> frozenset[str]:  # noqa: ARG002 - of a service
        program = self._measured
        if program is None:
            return frozenset()
        return frozenset(
            f"line:/{module.name}/{line}"
            for key, lines in (self._executed_lines(body) or {}).items()
            for module in (program.modules[key],)
            for line in module.statement_lines(lines)
        )

    def _executed_lines(self, body: Mapping[str, Any]) -> Mapping[str, frozenset[int]] | None:
        """Return the lines that a run executes by file; None if they cannot be determined."""
        program = self._measured
        return None if program is None else program.executed_lines(self._input_of(body))


def _is_defect(output: ProcessOutput) -> bool:
    """Return True if a Python program ended with an exception that it does not intend, and does not raise."""
    _, sign, traceback = output.stderr.decode(errors="replace").rpartition(_TRACEBACK_SIGN)
    frames = [*_FRAME_PATTERN.finditer(traceback)] if sign and output.exit_code == 1 else []
    if not frames or (frames[-1][1] or "").startswith("raise"):
        return False
    last = traceback[frames[-1].end() :].strip().split("\n")
    return any(line.partition(":")[0].strip() in DEFECT_ERRORS for line in last)


@cache
def _machine_facts() -> frozenset[str]:
    """Return texts that differ on another machine, or on another day."""
    facts = {platform.node(), platform.release(), platform.python_version(), date.today().isoformat()}  # noqa: DTZ011 - as programs print it
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        facts |= {found[1]} if found else set()
    return frozenset(fact for fact in facts if len(fact) >= MIN_REDACTED_LENGTH and not fact.isalpha())


def input_of(body: Mapping[str, Any]) -> ProgramInput:
    """Return the input of a run from the body of a test."""
    call = body.get("call")
    return ProgramInput(
        tuple(map(str, body.get("arguments") or ())),
        (body.get("stdin") or "").encode(errors="surrogateescape"),
        PythonCall(str(call["module"]), str(call["code"])) if call else None,
        tuple((file["path"], file["content"].encode(errors="replace")) for file in body.get("files") or ()),
        tuple(file["path"] for file in body.get("expected_files") or ()),
    )


def expects_anything(test: TestCase) -> bool:
    """Return True if a test has an expectation."""
    body = test.body or {}
    expected = (test.expected_output, body.get("exit_code"), body.get("stderr"))
    return any(one is not None for one in expected) or bool(body.get("expected_files"))


def _argument_problems(body: Mapping[str, Any]) -> Iterator[Finding]:
    arguments = body.get("arguments") or ()
    if len(arguments) > _MAX_ARGUMENTS:
        yield Finding("TOO_MANY_ARGUMENTS", "/arguments", f"has more than {_MAX_ARGUMENTS} arguments")
    if sum(len(argument.encode()) for argument in arguments) > _MAX_ARGUMENT_BYTES:
        message = f"has more than {_MAX_ARGUMENT_BYTES} bytes, close to the limit of the system"
        yield Finding("TOO_MANY_ARGUMENTS", "/arguments", message)
    for index, argument in enumerate(arguments):
        if "\0" in argument:
            yield Finding("BAD_ARGUMENT", f"/arguments/{index}", "contains NUL; leave it out")


def _file_problems(body: Mapping[str, Any]) -> Iterator[Finding]:
    for kind in ("files", "expected_files"):
        files = body.get(kind) or ()
        if len(files) > _MAX_FILES:
            yield Finding("TOO_MANY_FILES", f"/{kind}", f"has more than {_MAX_FILES} files")
        for index, file in enumerate(files):
            place = f"/{kind}/{index}"
            parts = str(file.get("path") or "").split("/")
            if "\0" in "".join(parts) or not {"", ".", ".."}.isdisjoint(parts):
                message = "is not a path in the working directory; use one such as data/input.txt"
                yield Finding("BAD_FILE_PATH", f"{place}/path", message)
            if kind == "files" and file.get("content") is None:
                yield Finding("BODY_INVALID", f"{place}/content", "is missing; add the content of the file")
    size = sum(len((file.get("content") or "").encode(errors="replace")) for file in body.get("files") or ())
    if size > _MAX_FILE_BYTES:
        yield Finding("TOO_MANY_FILES", "/files", f"has more than {_MAX_FILE_BYTES} bytes; shorten them")


def unmet_expectations(test: TestCase, output: ProcessOutput) -> Iterator[Finding]:
    """Yield the unmet expectations of a test of a command."""
    if output.exit_code is None:
        yield Finding("TIMEOUT", "", "the command did not end in time")
        return
    wanted = (test.body or {}).get("exit_code")
    if wanted is not None and wanted != output.exit_code:
        message = f"the exit code is {output.exit_code}; expected {wanted}"
        yield Finding("EXPECTATION_NOT_MET", "/exit_code", message)
    expected = test.expected_output
    if expected is not None and expected.rstrip() != output.stdout.decode(errors="replace").rstrip():
        than = f"what its source requires: {test.source}" if test.source else "the expected one"
        yield Finding("EXPECTATION_NOT_MET", "", f"the output differs from {than}")
    yield from _unmet_errors((test.body or {}).get("stderr"), output.stderr.decode(errors="replace"))
    for index, file in enumerate((test.body or {}).get("expected_files") or ()):
        if not _has_content(output.files.get(file["path"]), file["content"]):
            message = f"the file {file['path']} is missing, or its content differs"
            if file["content"] is None:
                message = f"the file {file['path']} exists; expected none"
            yield Finding("EXPECTATION_NOT_MET", f"/expected_files/{index}", message)


def _unmet_errors(wanted: str | None, written: str) -> Iterator[Finding]:
    if wanted == "" and written.strip():
        yield Finding("EXPECTATION_NOT_MET", "/stderr", "standard error is not empty")
    elif wanted is not None and wanted.strip() not in written:
        yield Finding("EXPECTATION_NOT_MET", "/stderr", f"standard error does not contain {wanted[:200]!r}")


def _has_content(found: bytes | None, wanted: str | None) -> bool:
    if found is None or wanted is None:
        return found is None and wanted is None
    return found.decode(errors="replace").rstrip() == wanted.rstrip()


def _format_output(output: ProcessOutput) -> str:
    exit_code = "time over" if output.exit_code is None else f"exit code {output.exit_code}"
    told = [exit_code]
    for name, data in (("stdout", output.stdout), ("stderr", output.stderr)):
        if data:
            told.append(f"{name}: {data.decode(errors='replace').rstrip()}")
    for name, content in output.files.items():
        shown = "missing" if content is None else content.decode(errors="replace").rstrip()
        told.append(f"file {name}: {shown}")
    return "\n".join(told).encode()[:_MAX_OBSERVED_BYTES].decode(errors="ignore")


def _output_digest(output: ProcessOutput) -> str:
    files = (data or b"" for data in output.files.values())
    parts = (str(output.exit_code).encode(), output.stdout, output.stderr, *files)
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
