"""JavaScript program: its files, and the lines that a run executes, by the coverage of V8.

The measured files are the program and those that it imports by relative paths. If the program defines no
function, the packages that it imports are measured as well. Mutants are not measured.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.baseline.expectations import iterate_documented_commands
from peripety.testgen.subjects.command.sandbox import DEFAULT_PATH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.baseline.expectations import DocumentedCommand
    from peripety.testgen.subjects.command.python_program import ProgramChanges, ProgramInput
    from peripety.testgen.subjects.command.sandbox import Sandbox


JAVASCRIPT_PROBE = Path(__file__).with_name("javascript_probe.cjs")
MIN_JAVASCRIPT_MEMORY_BYTES = 4 * 1024**3
"""The least limit of memory, which is address space: V8 reserves much, and uses little."""

_INTERPRETERS = {"node", "nodejs"}
_OPTIONS_WITH_VALUE = {"-r", "--require", "--import", "--loader", "-C", "--conditions"}
_SUFFIXES = {".js", ".cjs", ".mjs"}
_MAX_TRACED_RUNS = 256
_FILES_SECONDS = 60.0


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
        if PurePosixPath(program).suffix not in _SUFFIXES:
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
        statements: the offset and the line of each statement.
        changed: the lines to measure; None for all.

    Attributes:
        name: its path.
        text: its source.
        statements: the offset and the line of each statement.
        lines: the lines with the beginning of a statement, in order.
    """

    def __init__(
        self,
        name: str,
        text: str,
        statements: Sequence[Sequence[int]],
        changed: frozenset[int] | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.statements = statements
        lines = {line for _, line in statements}
        self.lines = tuple(sorted(lines if changed is None else lines & changed))
        self._text_lines = [line.strip() for line in text.split("\n")]

    def statement_lines(self, executed: Collection[int]) -> set[int]:
        """Return the executed lines that are measured."""
        return {*executed}.intersection(self.lines)

    def line_text(self, number: int) -> str:
        """Return a line without surrounding white space."""
        return self._text_lines[number - 1]


class JavaScriptProgram:
    """A JavaScript program.

    Args:
        command: the command that starts it.
        sandbox: runs it.
        changes: the lines to test and to measure; None for whole files.

    Attributes:
        command: the command that starts it.
        modules: the measured files by their path; none if this version of Node.js cannot measure.
        unmeasured_lines: the imported packages that are not measured, with their numbers of lines.
        affected_lines: the changed lines by the path of their file; empty for whole files.
    """

    def __init__(
        self, command: JavaScriptCommand, sandbox: Sandbox, changes: ProgramChanges | None = None
    ) -> None:
        self.command = command
        self._sandbox = sandbox
        self._changes = changes
        found = self._probe("files", {}, timeout_seconds=_FILES_SECONDS) or {}
        self.modules = {
            path: JavaScriptModule(path, text, statements, self._changed_lines(path))
            for path, text, statements in found.get("files", ())
        }
        self.unmeasured_lines: Mapping[str, int] = found.get("unmeasured", {}) if changes is None else {}
        self.affected_lines: Mapping[str, frozenset[int]] = {
            path: frozenset(module.lines)
            for path, module in self.modules.items()
            if changes is not None and module.lines
        }
        self._readme: str = found.get("readme", "")
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
            self._traced[given] = told and {
                path: frozenset(lines) for path, lines in told["lines"].items() if path in self.modules
            }
        return self._traced[given]

    def reaches_changes(self, lines: Mapping[str, frozenset[int]] | None) -> bool:
        """Return True if a run executes a changed line; True for whole files."""
        if self._changes is None or lines is None:
            return True
        return any(not own.isdisjoint(self.affected_lines.get(path, ())) for path, own in lines.items())

    def documented_commands(self) -> Iterator[DocumentedCommand]:
        """Yield the commands in the README of the package, with the output that follows them."""
        yield from iterate_documented_commands(self._readme, self._names)

    def _probe(
        self,
        command: str,
        job: Mapping[str, Any],
        given: ProgramInput | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Run a command of the probe, and return its result; None if it does not report one."""
        own = self.command
        with tempfile.TemporaryFile(prefix="peripety-") as report:
            report.write(json.dumps({"options": own.options, **job}).encode())
            report.seek(0)
            options = ("--expose-internals", "--no-warnings", str(JAVASCRIPT_PROBE), command)
            arguments = () if given is None else (*own.arguments, *given.arguments)
            self._sandbox.run(
                (own.interpreter, *options, str(report.fileno()), own.program, *arguments),
                b"" if given is None else given.stdin,
                {} if given is None else dict(given.files),
                descriptors=(report.fileno(),),
                timeout_seconds=timeout_seconds,
            )
            report.seek(0)
            try:
                result = json.loads(report.read())
            except ValueError:
                return None
            return None if "options" in result else result
