"""Python program of any number of modules: its files, the lines that a run executes, and its mutants.

The measured files are the ones that the command starts or imports from its directory. An installed package is
measured as well if the command starts it (`-m`), if the task names it, or if it is imported by a wrapper,
which is a file that defines nothing itself. Folders with tests are left out.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shlex
import shutil
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

import coverage

from peripety.errors import InvalidArgumentError
from peripety.testgen.subjects.command import function_survey, probe, survey
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.sandbox import DEFAULT_PATH, MAX_ATTEMPTS, MutantRuns, order_mutants
from peripety.testgen.subjects.grpc_service import calls
from peripety.testgen.subjects.http_service import exchange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.subjects.command.sandbox import ProcessOutput, Sandbox


_COVERAGE_DIRECTORY = Path(coverage.__file__).parents[1]
_HYPOTHESIS = importlib.util.find_spec("hypothesis")
HAS_HYPOTHESIS = _HYPOTHESIS is not None
"""True if arguments of functions can be drawn."""

_HYPOTHESIS_DIRECTORY = Path((_HYPOTHESIS and _HYPOTHESIS.origin) or coverage.__file__).parents[1]
MEASURING_PATHS = (
    Path(probe.__file__),
    Path(survey.__file__),
    Path(function_survey.__file__),
    Path(exchange.__file__),
    Path(calls.__file__),
    _COVERAGE_DIRECTORY,
    _HYPOTHESIS_DIRECTORY,
)
"""Paths that a program reads while it is measured."""
_OPTIONS_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}


@dataclass(frozen=True, slots=True)
class ProgramCommand:
    """The parts of a command that starts a Python program.

    Attributes:
        interpreter: the interpreter and its options.
        program: the path of the program, or the name of a module.
        is_module: True for the name of a module (`-m`).
        is_isolated: True if the interpreter does not search the directory of the program for modules.
        arguments: the first arguments of the program.
        is_library: True if tests call functions of the module, in place of the program.
        function: the function to call; empty for all public ones of the module.
    """

    interpreter: tuple[str, ...]
    program: str
    is_module: bool
    is_isolated: bool
    arguments: tuple[str, ...]
    is_library: bool = False
    function: str = ""


def parse_command(
    argv: Sequence[str],
    directory: Path | None,
    environment: Mapping[str, str],
) -> ProgramCommand | None:
    """Return the parts of a command that starts a Python program; None for any other command.

    A file that begins with `#!` and the path of a Python interpreter is a Python program, too.

    Args:
        argv: the command.
        directory: its working directory; None for an empty one.
        environment: its environment variables.
    """
    if not PurePosixPath(argv[0]).name.startswith("python"):
        return _parse_script(argv, directory, environment)
    index = 1
    while index < len(argv) and argv[index].startswith("-") and argv[index] != "-":
        option = argv[index]
        if option == "-m" and index + 1 < len(argv):
            return _program_command(argv[:index], argv[index + 1], argv[index + 2 :], is_module=True)
        if option == "-c":
            return None
        index += 2 if option in _OPTIONS_WITH_VALUE else 1
    if index >= len(argv) or argv[index] == "-":
        return None
    return _program_command(argv[:index], argv[index], argv[index + 1 :], is_module=False)


def _program_command(
    interpreter: Sequence[str],
    program: str,
    arguments: Sequence[str],
    *,
    is_module: bool,
) -> ProgramCommand:
    is_isolated = any(option in {"-I", "-P"} for option in interpreter)
    return ProgramCommand(tuple(interpreter), program, is_module, is_isolated, tuple(arguments))


def _parse_script(
    argv: Sequence[str],
    directory: Path | None,
    environment: Mapping[str, str],
) -> ProgramCommand | None:
    name = argv[0]
    if "/" not in name:
        name = shutil.which(name, path=environment.get("PATH", DEFAULT_PATH)) or ""
    try:
        with (directory or Path("/")).joinpath(name).open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    words = shlex.split(first[2:].decode(errors="replace")) if first.startswith(b"#!") else []
    if not any(PurePosixPath(word).name.startswith("python") for word in words):
        return None
    return _program_command(words, name, argv[1:], is_module=False)


@dataclass(frozen=True, slots=True)
class ProgramChanges:
    """Lines that have changed since a revision.

    Attributes:
        revision: the revision, for display.
        files: ranges of lines, each with its first and its last line, by the path in the directory.
    """

    revision: str
    files: Mapping[str, tuple[tuple[int, int], ...]]

    def lines_of(self, path: str) -> frozenset[int]:
        """Return the changed lines of a file."""
        return frozenset(line for first, last in self.files.get(path, ()) for line in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class PythonCall:
    """Statements that run in a module of the program, in place of the command.

    Attributes:
        module: the dotted name of the module.
        code: the statements. Values of expressions are printed, and an exception, as in a doctest.
    """

    module: str
    code: str


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """The input of a run.

    Attributes:
        arguments: the arguments after those of the command.
        stdin: the standard input.
        call: statements to run in place of the command; None for the command.
        files: files to write before the run, each with its content.
        read_back: paths of files whose contents are results.
        exchange: the job of `exchange`, as JSON, if the program is a service; else empty.
    """

    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    call: PythonCall | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    read_back: tuple[str, ...] = ()
    exchange: str = ""

    def to_job(self) -> dict[str, Any]:
        """Return the input for a probe."""
        return {
            "arguments": [*self.arguments],
            "stdin": self.stdin.decode(errors="surrogateescape"),
            "call": None if self.call is None else {"module": self.call.module, "code": self.call.code},
            "exchange": json.loads(self.exchange) if self.exchange else None,
        }


@dataclass(frozen=True, slots=True)
class ProgramInterface:
    """The interface of a program, as found by running it.

    Attributes:
        commands: the parsers of its arguments: `path` (names of subcommands), `parameters`, `is_group`.
        values: the values of its modules: key of the file, name, kind (`number`, `text`, `pattern`), value.
        modules: the names of the imported modules.
        readmes: the packages that are measured, each with its README.
        names: the names that the program is called by.
    """

    commands: tuple[Mapping[str, Any], ...] = ()
    values: tuple[tuple[str, str, str, str], ...] = ()
    modules: tuple[str, ...] = ()
    readmes: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SurveyedCall:
    """The result of a call in a survey.

    Attributes:
        exit_code: the exit code; None after the time limit.
        stdout: the beginning of its standard output.
        lines: the executed lines by the key of the file.
        features: numbers for facts about the run; see `survey`.
        patterns: the regular expressions that it used: key of the file, line, expression.
        accident: the class of the exception that ended it, if no `raise` statement raised it; or empty.
    """

    exit_code: int | None
    stdout: bytes
    lines: Mapping[str, frozenset[int]]
    features: frozenset[int]
    patterns: tuple[tuple[str, int, str], ...] = ()
    accident: str = ""


@dataclass(frozen=True, slots=True)
class _TracedRun:
    """The executed lines by the key of the file, and the imported modules that are not measured."""

    lines: Mapping[str, frozenset[int]]
    imported: tuple[str, ...]


class PythonProgram:
    """A Python program.

    Args:
        command: the command that starts it.
        sandbox: runs it.
        timeout_seconds: the time limit of a run.
        task: the description of the task, which may name installed packages to measure.
        changes: the lines to test and to measure; None for whole files.

    Raises:
        InvalidArgumentError: the program is not valid Python.

    Attributes:
        modules: the measured files by their key, which is the path in the directory, or an absolute path.
        unmeasured_lines: the imported packages that are not measured, with their numbers of lines.
        functions: the functions to call in place of the program, each with the module that defines it.
    """

    def __init__(
        self,
        command: ProgramCommand,
        sandbox: Sandbox,
        timeout_seconds: float,
        task: str,
        changes: ProgramChanges | None = None,
    ) -> None:
        self._changes = changes
        self._sandbox = sandbox
        self._timeout = timeout_seconds
        self._command = command
        found = (self._probe("files", {"task": task}) or [{}])[0]
        self.functions = tuple((module, name) for module, name in found.get("functions", ()))
        if command.function and self.functions:  # another module may define the function
            ((module, name),) = self.functions
            self._command = replace(command, program=module, function=name)
        self._entry: str = found.get("entry", "")
        self.unmeasured_lines: Mapping[str, int] = found.get("unmeasured", {}) if changes is None else {}
        self.modules: dict[str, PythonModule] = {}
        for key, name, source in found.get("files", ()):
            self._add_module(key, name, base64.b64decode(source))
        self._left_out: Mapping[str, frozenset[int]] = {}
        self._traced: dict[ProgramInput, _TracedRun | None] = {}
        self._mutant_runs = MutantRuns(timeout_seconds)

    def _add_module(self, key: str, name: str, source: bytes) -> None:
        try:
            changed = None if self._changes is None else self._changes.lines_of(key)
            self.modules[key] = PythonModule(name, source, self._command.function, changed)
        except InvalidArgumentError:
            if key == self._entry:
                raise

    @cached_property
    def _mutants(self) -> Mapping[str, tuple[str, str]]:
        """The key of the file and the id in it by the id of the mutant, in the order of the files."""
        return {
            # The ids of a program with one file are those of the file.
            inner if key == self._entry else f"{module.name}:{inner}": (key, inner)
            for key, module in self.modules.items()
            for inner in module.mutant_ids
            if self._left_out.get(key, frozenset()).isdisjoint(module.lines_of(inner))
        }

    @cached_property
    def _mutant_order(self) -> Sequence[str]:
        """The mutants in the order in which they are worth measuring."""
        return order_mutants(
            {one: (key, *self.modules[key].place_of(inner)) for one, (key, inner) in self._mutants.items()}
        )

    @property
    def is_limited(self) -> bool:
        """True if only changed lines are tested and measured."""
        return self._changes is not None

    @cached_property
    def affected_lines(self) -> Mapping[str, frozenset[int]]:
        """The lines that do something else after the changes, by the key of their file."""
        if self._changes is None:
            return {}
        found = {key: module.find_affected() for key, module in self.modules.items()}
        names = set[str]().union(*(own for _, own in found.values()))
        lines = {key: own | self.modules[key].lines_using(names) for key, (own, _) in found.items()}
        return {key: frozenset(own) for key, own in lines.items() if own}

    def reaches_changes(self, lines: Mapping[str, frozenset[int]] | None) -> bool:
        """Return True if a run that executes the lines depends on the changes; True for whole files."""
        if self._changes is None or lines is None:
            return True
        affected = self.affected_lines
        return any(not affected.get(key, _NO_LINES).isdisjoint(own) for key, own in lines.items())

    def leave_out(self, given: ProgramInput) -> None:
        """Leave out the mutants of statements that a run executes, such as the start of a service."""
        self._left_out = self.executed_lines(given) or {}

    def iterate_mutants(self, start: int, count: int) -> Iterator[Mutant]:
        """Yield mutants in the order of the files.

        Args:
            start: the number of mutants to skip, of those that are most worth measuring.
            count: the maximum number of mutants.
        """
        chosen = frozenset(self._mutant_order[start : start + count])
        for mutant_id, (key, inner) in self._mutants.items():
            if mutant_id in chosen:
                yield replace(self.modules[key].mutant(inner), mutant_id=mutant_id)

    def is_equivalent(self, mutant_id: str) -> bool:
        """Return True if a mutant compiles to identical bytecode."""
        key, inner = self._mutants[mutant_id]
        return self.modules[key].is_equivalent(inner)

    def executed_lines(self, given: ProgramInput) -> Mapping[str, frozenset[int]] | None:
        """Return the lines that a run executes, by the key of the file; None if they are unknown."""
        traced = self._trace(given)
        return None if traced is None else traced.lines

    def find_interface(self) -> ProgramInterface:
        """Run the program until it parses its arguments, and return its interface."""
        found = (self._probe("interface", {}, script=survey.__file__) or [{}])[0]
        given = [*self._command.arguments]
        return ProgramInterface(
            tuple(
                {**command, "path": command["path"][len(given) :]}
                for command in found.get("commands", ())
                if command["path"][: len(given)] == given or not command["is_group"]
            ),
            tuple((key, name, kind, value) for key, name, kind, value in found.get("values", ())),
            tuple(found.get("modules", ())),
            tuple((package, text) for package, text in found.get("readmes", ())),
            tuple(found.get("names", ())),
        )

    @property
    def command(self) -> ProgramCommand:
        """The command that starts it; for a function, with the module that defines it."""
        return self._command

    def survey_functions(
        self,
        laws: Sequence[Mapping[str, Any]],
        constants: Mapping[str, Sequence[Any]],
    ) -> list[Any]:
        """Return calls of the functions with drawn arguments, and the results of laws.

        Args:
            laws: `module`, `function`, `code`, `arity` and `is_sure` of each law.
            constants: values of the sources by the name of their module, for arguments.

        Returns:
            The results of `function_survey`: `module`, `function` and `calls` of each function, and `law`
            with `held` and `missed` calls of each law.
        """
        job = {
            "laws": laws,
            "functions": self.functions,
            "constants": constants,
            "packages": [str(_HYPOTHESIS_DIRECTORY)],
        }
        steps = min(len(laws) + len(self.functions), _MAX_STEPS)
        limit = _FUNCTION_SECONDS + _STEP_SECONDS * steps
        script = function_survey.__file__
        return self._probe("values", job, timeout_seconds=limit, script=script) or []

    def survey_calls(
        self,
        interface: ProgramInterface,
        calls: Sequence[ProgramInput],
        seconds: float,
    ) -> list[SurveyedCall]:
        """Run calls, each in a process that is forked from a prepared one, until a time limit.

        Args:
            interface: the interface of the program.
            calls: the calls.
            seconds: the limit of the processor time of all of them.

        Returns:
            The results of the calls that ended within the time limit, in order.
        """
        job = {
            "modules": interface.modules,
            "calls": [
                {
                    **call.to_job(),
                    "arguments": [*self._command.arguments, *call.arguments],
                    "files": {name: content.decode() for name, content in call.files},
                }
                for call in calls
            ],
            "seconds": seconds,
        }
        limit = MAX_SLOWDOWN * seconds + self._timeout
        results = self._probe("calls", job, timeout_seconds=limit, script=survey.__file__) or ()
        return [
            SurveyedCall(
                result["exit_code"],
                base64.b64decode(result["stdout"]),
                {key: frozenset(lines) for key, lines in result.get("lines", {}).items()},
                frozenset(result.get("features", ())),
                tuple((key, line, pattern) for key, line, pattern in result.get("patterns", ())),
                result.get("accident", ""),
            )
            for result in results
        ]

    def reached_mutants(
        self,
        lines: Mapping[str, frozenset[int]] | None,
        among: Collection[str],
    ) -> list[str]:
        """Return the given mutants in statements that a run executes; all of them for unknown lines."""
        places = {one: self._mutants[one] for one in among if one in self._mutants}
        return [
            mutant_id
            for mutant_id, (key, inner) in places.items()
            if lines is None or not lines.get(key, frozenset()).isdisjoint(self.modules[key].lines_of(inner))
        ]

    def run_mutants(
        self,
        given: ProgramInput,
        mutant_ids: Sequence[str],
    ) -> Iterator[tuple[str | None, ProcessOutput]]:
        """Run the program and then mutants of it; yield each with its output, first the program as None.

        See `MutantRuns` for the limits.

        Args:
            given: the input.
            mutant_ids: the mutants.
        """
        traced = self._trace(given)
        imported = () if traced is None else traced.imported

        def run_batch(batch: Sequence[str], limit: float) -> Sequence[Mapping[str, Any]]:
            job = {
                "modules": imported,
                "mutants": [self._source_of(one) for one in batch],
                "read_back": given.read_back,
            }
            return self._probe("mutants", job, given, limit) or ()

        yield from self._mutant_runs.run(mutant_ids, run_batch)

    def _source_of(self, mutant_id: str) -> tuple[str, str]:
        key, inner = self._mutants[mutant_id]
        return key, self.modules[key].source_of(inner).decode()

    def _trace(self, given: ProgramInput) -> _TracedRun | None:
        if given not in self._traced:
            if len(self._traced) >= _MAX_TRACED_RUNS:
                self._traced.clear()
            results = self._probe("lines", {"coverage": str(_COVERAGE_DIRECTORY)}, given)
            self._traced[given] = (
                _TracedRun(
                    {key: frozenset(lines) for key, lines in results[0]["lines"].items()},
                    tuple(results[0]["modules"]),
                )
                if results
                else None
            )
        return self._traced[given]

    def _probe(
        self,
        command: str,
        job: Mapping[str, Any],
        given: ProgramInput = ProgramInput(),
        timeout_seconds: float | None = None,
        *,
        script: str = probe.__file__,
    ) -> list[Any] | None:
        """Run a command of the probe, and return its results; None if it does not report them."""
        files = [*self.modules] if command != "files" else []
        whole_job = {"files": files, "seconds": self._timeout, **given.to_job(), **job}
        results: list[Any] | None = None
        for _ in range(MAX_ATTEMPTS):
            results, is_killed = self._run_probe(command, whole_job, given, timeout_seconds, script)
            if results or not is_killed:
                break
        return results

    def _run_probe(
        self,
        command: str,
        job: Mapping[str, Any],
        given: ProgramInput,
        timeout_seconds: float | None,
        script: str,
    ) -> tuple[list[Any] | None, bool]:
        """Return the results of a run of the probe, and True if it was killed."""
        with _report_file(self._command, job) as report:
            argv = (*self._command.interpreter, script, command, str(report.fileno()))
            asked = os.pread(report.fileno(), _MAX_REPORT_BYTES, 0)
            output = self._sandbox.run(
                (*argv, *self._command.arguments, *given.arguments),
                given.stdin,
                dict(given.files),
                descriptors=(report.fileno(),),
                timeout_seconds=timeout_seconds,
            )
            is_killed = output.exit_code == -signal.SIGKILL
            if os.pread(report.fileno(), _MAX_REPORT_BYTES, 0) == asked:
                return None, is_killed  # it ended before it read the job
            report.seek(0)
            try:
                return [json.loads(line) for line in report], is_killed
            except ValueError:
                return None, is_killed


@contextmanager
def _report_file(started: ProgramCommand, job: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """Yield a file that holds a job for a probe, and receives its results."""
    whole_job = {
        "program": started.program,
        "is_module": started.is_module,
        "is_isolated": started.is_isolated,
        "is_library": started.is_library,
        "function": started.function,
        **job,
    }
    with tempfile.TemporaryFile(prefix="peripety-") as report:
        report.write(json.dumps(whole_job).encode())
        report.seek(0)
        yield report


def run_python_call(started: ProgramCommand, sandbox: Sandbox, given: ProgramInput) -> ProcessOutput:
    """Run the statements of an input in place of a command."""
    with _report_file(started, {"call": given.to_job()["call"]}) as report:
        return sandbox.run(
            (*started.interpreter, probe.__file__, "call", str(report.fileno())),
            given.stdin,
            dict(given.files),
            given.read_back,
            descriptors=(report.fileno(),),
        )


_NO_LINES = frozenset[int]()
_MAX_REPORT_BYTES = 1 << 28
_MAX_TRACED_RUNS = 1_024
_FUNCTION_SECONDS = 30.0
_STEP_SECONDS = 15.0
"""Time limit of each step of the survey of functions, whose processor time is limited as well."""

_MAX_STEPS = 12
"""Number of steps whose time limits are added; all steps have a limit of processor time as well."""

MAX_SLOWDOWN = 10
"""A survey is limited by processor time; on a busy machine, it takes so many times as long at most."""
