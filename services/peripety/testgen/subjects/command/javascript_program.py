"""JavaScript program: its files, the lines that a run executes, and its mutants.

The measured files are the program and those that it imports by relative paths. If the program defines no
function, the packages that it imports are measured as well. The lines come from the coverage of V8, and the
mutants from the instrumenter of Stryker, if npm has installed it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from peripety.core.mutation_testing import Mutant, MutantOutcome
from peripety.testgen.subjects.command.baseline.expectations import iterate_documented_commands
from peripety.testgen.subjects.command.python_program import MAX_SLOWDOWN, SurveyedCall
from peripety.testgen.subjects.command.sandbox import DEFAULT_PATH, MutantRuns, order_mutants

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.baseline.expectations import DocumentedCommand
    from peripety.testgen.subjects.command.python_program import (
        ProgramChanges,
        ProgramInput,
    )
    from peripety.testgen.subjects.command.sandbox import ProcessOutput, Sandbox


JAVASCRIPT_PROBE = Path(__file__).with_name("javascript_probe.cjs")
MIN_JAVASCRIPT_MEMORY_BYTES = 4 * 1024**3
"""The least limit of memory, which is address space: V8 reserves much, and uses little."""

INSTRUMENTER_MISSING = (
    "the mutants of a JavaScript program are not measured; install the instrumenter of Stryker:"
    " npm install --global @stryker-mutator/instrumenter@9"
)
"""The reason for a program without mutants."""

_INTERPRETERS = {"node", "nodejs"}
_OPTIONS_WITH_VALUE = {"-r", "--require", "--import", "--loader", "-C", "--conditions"}
_WITHOUT_FILE = {"-e", "--eval", "-p", "--print", "-pe", "--test", "--run"}
_SUFFIXES = {"", ".js", ".cjs", ".mjs"}
_MAX_TRACED_RUNS = 256
_FILES_SECONDS = 60.0
_INSTRUMENTER_SECONDS = 300.0
_MAX_MUTATED_CHARACTERS = 512 * 1024
"""Limit of the sources to mutate; at most 300 of the mutants are run."""


def find_instrumenter(directory: Path | None) -> Path | None:
    """Return the directory of the packages of npm that has the instrumenter of Stryker; None without one.

    Args:
        directory: the directory of the program. Its parents may have such packages, too; the others are
            those of the variable `NODE_PATH` and the global ones.
    """
    named = [Path(one) for one in os.environ.get("NODE_PATH", "").split(os.pathsep) if one]
    own = directory.resolve() if directory is not None else None
    near = [one / "node_modules" for one in (own, *own.parents)] if own is not None else []
    found = next(filter(_has_instrumenter, (*named, *near)), None)
    return found if found is not None else _find_global_instrumenter()


@cache
def _find_global_instrumenter() -> Path | None:
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ["npm", "root", "--global"],  # noqa: S607 - as a person starts it
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=_FILES_SECONDS,
        )
        packages = Path(told.stdout.strip())
        return packages if _has_instrumenter(packages) else None
    return None


def _has_instrumenter(packages: Path) -> bool:
    return (packages / "@stryker-mutator" / "instrumenter" / "package.json").is_file()


@dataclass(frozen=True, slots=True)
class JavaScriptCommand:
    """The parts of a command that starts a JavaScript program.

    Attributes:
        interpreter: the path or name of Node.js.
        options: its options.
        program: the path of the program.
        arguments: the first arguments of the program.
        is_library: False, as for each program.
    """

    interpreter: str
    options: tuple[str, ...]
    program: str
    arguments: tuple[str, ...]
    is_library: bool = False


def parse_javascript_command(
    argv: Sequence[str],
    directory: Path | None,
    environment: Mapping[str, str],
) -> JavaScriptCommand | None:
    """Return the parts of a command that starts a JavaScript program; None for any other command.

    A file that begins with `#!` and the name of Node.js is a JavaScript program, too.

    Args:
        argv: the command.
        directory: its working directory; None for an empty one.
        environment: its environment variables.
    """
    if PurePosixPath(argv[0]).name in _INTERPRETERS:
        index = 1
        while index < len(argv) and argv[index].startswith("-"):
            index += 2 if argv[index] in _OPTIONS_WITH_VALUE else 1
        program = argv[index] if index < len(argv) else ""
        is_file = program and PurePosixPath(program).suffix in _SUFFIXES
        if not is_file or not _WITHOUT_FILE.isdisjoint(argv[1:index]):
            return None
        return JavaScriptCommand(argv[0], tuple(argv[1:index]), program, tuple(argv[index + 1 :]))
    name = argv[0]
    if "/" not in name:
        name = shutil.which(name, path=environment.get("PATH", DEFAULT_PATH)) or ""
    try:
        with (directory or Path("/")).joinpath(name).open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    words = shlex.split(first[2:].decode(errors="replace")) if first.startswith(b"#!") else []
    found = next((word for word in words if PurePosixPath(word).name in _INTERPRETERS), None)
    return None if found is None else JavaScriptCommand(found, (), name, tuple(argv[1:]))


class JavaScriptModule:
    """A source file.

    Args:
        name: its path.
        text: its source.
        statements: the offset, the line and the end of each statement.
        functions: the line of each function, the first line of its body, and its last line.
        literals: the function, the line, the kind (`number`, `length`, `pattern`, `compared`, `argument` or
            `text`) and the text of each literal. The function is given by its line, or 0.
        changed: the lines to measure; None for all.

    Attributes:
        name: its path.
        text: its source.
        statements: the offset, the line and the end of each statement.
        functions: as the argument.
        literals: as the argument.
        lines: the lines with the beginning of a statement, in order.
    """

    def __init__(
        self,
        name: str,
        text: str,
        statements: Sequence[Sequence[int]],
        functions: Sequence[tuple[int, int, int]] = (),
        literals: Sequence[tuple[int, int, str, str]] = (),
        changed: frozenset[int] | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.statements = statements
        self.functions = functions
        self.literals = literals
        lines = {line for _, line, _ in statements}
        self.lines = tuple(sorted(lines if changed is None else lines & changed))
        self._text_lines = [line.strip() for line in text.split("\n")]

    @property
    def function_lines(self) -> Sequence[tuple[int, int]]:
        """The first and the last line of each function."""
        return [(first, last) for first, _, last in self.functions]

    def statement_lines(self, executed: Collection[int]) -> set[int]:
        """Return the executed lines that are measured."""
        return {*executed}.intersection(self.lines)

    def line_text(self, number: int) -> str:
        """Return a line without surrounding white space."""
        return self._text_lines[number - 1]


@dataclass(frozen=True, slots=True)
class _InstrumentedFiles:
    """Files with all mutants in them, by their path, and the mutants by their id, as the probe finds them."""

    files: Mapping[str, str]
    mutants: Mapping[str, Mapping[str, Any]]


class JavaScriptProgram:
    """A JavaScript program.

    Args:
        command: the command that starts it.
        sandbox: runs it.
        timeout_seconds: the time limit of a run.
        instrumenter: the packages with the instrumenter of Stryker; None for a program without mutants.
        changes: the lines to test and to measure; None for whole files.

    Attributes:
        command: the command that starts it.
        modules: the measured files by their path; none if this version of Node.js cannot measure.
        unmeasured_lines: the imported packages that are not measured, with their numbers of lines.
        readme: the README of its package; may be empty.
        affected_lines: the changed lines by the path of their file; empty for whole files.
    """

    def __init__(
        self,
        command: JavaScriptCommand,
        sandbox: Sandbox,
        timeout_seconds: float,
        instrumenter: Path | None = None,
        changes: ProgramChanges | None = None,
    ) -> None:
        self.command = command
        self._sandbox = sandbox
        self._timeout = timeout_seconds
        self._instrumenter = instrumenter
        self._changes = changes
        self._mutant_runs = MutantRuns(timeout_seconds)
        (found,) = self._probe("files", {}, timeout_seconds=_FILES_SECONDS) or [{}]
        self.modules = {
            path: JavaScriptModule(path, text, statements, functions, literals, self._changed_lines(path))
            for path, text, statements, functions, literals in found.get("files", ())
        }
        self.unmeasured_lines: Mapping[str, int] = found.get("unmeasured", {}) if changes is None else {}
        self.affected_lines: Mapping[str, frozenset[int]] = {
            path: frozenset(module.lines)
            for path, module in self.modules.items()
            if changes is not None and module.lines
        }
        self.readme: str = found.get("readme", "")
        self._names: Sequence[str] = found.get("names", ())
        self._traced: dict[ProgramInput, Mapping[str, frozenset[int]] | None] = {}

    def _changed_lines(self, path: str) -> frozenset[int] | None:
        return None if self._changes is None else self._changes.lines_of(path)

    def executed_lines(self, given: ProgramInput) -> Mapping[str, frozenset[int]] | None:
        """Return the lines that a run executes, by the path of the file; None if they are unknown."""
        if given not in self._traced:
            if len(self._traced) >= _MAX_TRACED_RUNS:
                self._traced.clear()
            job = {"files": {path: module.statements for path, module in self.modules.items()}}
            told = self._probe("lines", job, given)
            lines = told[0]["lines"] if told else None
            self._traced[given] = lines and {
                path: frozenset(own) for path, own in lines.items() if path in self.modules
            }
        return self._traced[given]

    @cached_property
    def _instrumented(self) -> _InstrumentedFiles:
        """The files with their mutants. Only files in the directory of the program have some."""
        own = self._sample_files()
        if self._instrumenter is None or not own:
            return _InstrumentedFiles({}, {})
        job = {
            "files": {path: self.modules[path].statements for path in own},
            "tool": str(self._instrumenter),
        }
        (found,) = self._probe("instrument", job, timeout_seconds=_INSTRUMENTER_SECONDS) or [{}]
        mutants: dict[str, Mapping[str, Any]] = {}
        seen = Counter[str]()
        for one in found.get("mutants", ()):
            if self._changes is None or one["line"] in self.modules[one["file"]].lines:
                place = f"{one['file']}:{one['line']}:{one['column']}:{_to_snake_case(one['operator'])}"
                seen[place] += 1
                mutants[f"{place}:{seen[place]}" if seen[place] > 1 else place] = one
        return _InstrumentedFiles(found.get("files", {}), mutants)

    @cached_property
    def _mutant_order(self) -> Sequence[str]:
        """The mutants in the order in which they are worth measuring."""
        mutants = self._instrumented.mutants
        return order_mutants({one: (mutant["file"], 0, mutant["line"]) for one, mutant in mutants.items()})

    def _sample_files(self) -> list[str]:
        """Return the files to mutate, in order: those in the directory, up to a size of all together."""
        own = [path for path, module in self.modules.items() if module.lines and not path.startswith("..")]
        kept: set[str] = set()
        left = _MAX_MUTATED_CHARACTERS
        for path in sorted(own, key=lambda one: sha256(one.encode()).digest()):
            left -= len(self.modules[path].text)
            if left >= 0 or not kept:
                kept.add(path)
        return [path for path in own if path in kept]

    def iterate_mutants(self, start: int, count: int) -> Iterator[Mutant]:
        """Yield mutants in the order of the files.

        Args:
            start: the number of mutants to skip, of those that are most worth measuring.
            count: the maximum number of mutants.
        """
        chosen = frozenset(self._mutant_order[start : start + count])
        for mutant_id, mutant in self._instrumented.mutants.items():
            if mutant_id not in chosen:
                continue
            before, after = (json.dumps(mutant[name]).encode() for name in ("before", "after"))
            path = f"/{mutant['file']}/{mutant['line']}"
            operator = _to_snake_case(mutant["operator"])
            statement = mutant["statement"]
            target = "" if statement is None else f"/{mutant['file']}/{statement}"
            yield Mutant(mutant_id, operator, path, before, after, MutantOutcome.SURVIVED, target=target)

    def is_equivalent(self, mutant_id: str) -> bool:  # noqa: ARG002 - nothing proves it
        """Return False: no mutant is proved equivalent."""
        return False

    def reached_mutants(
        self,
        lines: Mapping[str, frozenset[int]] | None,
        among: Collection[str],
    ) -> list[str]:
        """Return the given mutants in statements that a run executes; all of them for unknown lines."""
        mutants = self._instrumented.mutants
        return [
            mutant_id
            for mutant_id, mutant in ((one, mutants[one]) for one in among if one in mutants)
            if lines is None or mutant["statement"] in {None, *lines.get(mutant["file"], ())}
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
        known = self._instrumented

        def run_batch(batch: Sequence[str], limit: float) -> Sequence[Mapping[str, Any]]:
            job = {
                "instrumented": known.files,
                "mutants": [{name: known.mutants[one][name] for name in ("id", "file")} for one in batch],
                "read_back": given.read_back,
                "seconds": self._timeout,
            }
            return self._probe("mutants", job, given, limit) or ()

        yield from self._mutant_runs.run(mutant_ids, run_batch)

    def reaches_changes(self, lines: Mapping[str, frozenset[int]] | None) -> bool:
        """Return True if a run executes a changed line; True for whole files."""
        if self._changes is None or lines is None:
            return True
        return any(not own.isdisjoint(self.affected_lines.get(path, ())) for path, own in lines.items())

    def survey_calls(self, calls: Sequence[ProgramInput], seconds: float) -> list[SurveyedCall]:
        """Run calls until a limit of their processor time.

        Args:
            calls: the calls.
            seconds: the limit of the processor time of all of them.

        Returns:
            The results of the calls that ended within the limit, in order.
        """
        job = {
            "files": {path: module.statements for path, module in self.modules.items()},
            "calls": [
                {
                    "arguments": call.arguments,
                    "stdin": call.stdin.decode(errors="replace"),
                    "files": {name: content.decode(errors="replace") for name, content in call.files},
                }
                for call in calls
            ],
            "seconds": seconds,
            "timeout": self._timeout,
        }
        limit = MAX_SLOWDOWN * seconds + self._timeout
        return [
            SurveyedCall(
                result["exit_code"],
                base64.b64decode(result["stdout"] or ""),
                {path: frozenset(lines) for path, lines in result["lines"].items()},
                frozenset(result["features"]),
            )
            for result in self._probe("calls", job, timeout_seconds=limit) or ()
        ]

    def documented_commands(self) -> Iterator[DocumentedCommand]:
        """Yield the commands in the README of the package, with the output that follows them."""
        yield from iterate_documented_commands(self.readme, self._names)

    def _probe(
        self,
        command: str,
        job: Mapping[str, Any],
        given: ProgramInput | None = None,
        timeout_seconds: float | None = None,
    ) -> list[Any] | None:
        """Run a command of the probe, and return its results; None if it does not report them."""
        own = self.command
        with tempfile.TemporaryFile(prefix="peripety-") as report:
            report.write(json.dumps({"options": own.options, **job}).encode())
            report.seek(0)
            options = ("--expose-internals", "--no-warnings", str(JAVASCRIPT_PROBE), command)
            arguments = (*own.arguments, *(() if given is None else given.arguments))
            self._sandbox.run(
                (own.interpreter, *options, str(report.fileno()), own.program, *arguments),
                b"" if given is None else given.stdin,
                {} if given is None else dict(given.files),
                descriptors=(report.fileno(),),
                timeout_seconds=timeout_seconds,
            )
            report.seek(0)
            try:
                results = [json.loads(line) for line in report]
            except ValueError:
                return None
            # It may end before it reads the job.
            return None if not results or "options" in results[0] else results


def _to_snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
