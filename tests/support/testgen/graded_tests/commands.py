"""Tasks about programs in Python, with tables written by hand of what goes in and has to come out."""

from __future__ import annotations

import io
import json
import sys
import weakref
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.sandbox import ProcessOutput
from peripety.testgen.subjects.command.subject import CommandSubject
from support.testgen.graded_tests.tasks import HiddenTest, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType, FrameType


PROGRAMS = Path(__file__).parent / "programs"
_DESCRIPTIONS = {
    "spans": "Reads spans of time such as 1h30m, tells them in short, adds, subtracts and rounds them.",
    "numerals": "Writes and reads Roman numerals, and adds columns of them up.",
    "releases": "Compares numbers of releases such as 1.4.0-rc.2, sorts them, and says which comes next.",
    "dates": "Says of days of the calendar whether they exist, what comes after them and lies between them.",
}


class InProcess(CommandSubject):
    """A program that always ends and touches nothing: it needs no process of its own for each run.

    Args:
        directory: where it lies.
        name: its file there.
    """

    def __init__(self, directory: Path, name: str) -> None:
        super().__init__([sys.executable, "-S", name], directory)
        self._name = name
        self._source = (directory / name).read_bytes()
        self._source_of = cache(PythonModule(name, self._source).source_of)

    def _run_command(self, body: Mapping[str, Any]) -> ProcessOutput:
        return self._ran(body, self._source)

    def _run_mutants(
        self,
        body: Mapping[str, Any],
        mutant_ids: Sequence[str],
    ) -> Iterator[tuple[str | None, ProcessOutput]]:
        for mutant_id in mutant_ids:
            yield mutant_id, self._ran(body, self._source_of(mutant_id))

    def _executed_lines(self, body: Mapping[str, Any]) -> Mapping[str, frozenset[int]]:
        lines: set[int] = set()

        def follow(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return follow

        before = sys.gettrace()
        sys.settrace(lambda frame, _, __: follow if frame.f_code.co_filename == self._name else None)
        try:
            self._ran(body, self._source)
        finally:
            sys.settrace(before)
        return {self._name: frozenset(lines)}

    def _ran(self, body: Mapping[str, Any], source: bytes) -> ProcessOutput:
        code = _code(self._name, source)
        out, before = io.StringIO(), (sys.argv, sys.stdin)
        sys.argv = [self._name, *map(str, body.get("arguments") or ())]
        sys.stdin = io.StringIO(body.get("stdin") or "")
        exit_code: Any = 0
        try:
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                exec(code, {"__name__": "__main__"})  # noqa: S102 - a program of our own
        except SystemExit as end:
            exit_code = end.code
        except Exception:  # noqa: BLE001 - whatever a mutant fails of, Python ends with
            exit_code = 1
        finally:
            sys.argv, sys.stdin = before
        is_number = exit_code is None or isinstance(exit_code, int)
        return ProcessOutput((exit_code or 0) & 0xFF if is_number else 1, out.getvalue().encode(), b"")


@cache
def _code(name: str, source: bytes) -> CodeType:
    return compile(source, name, "exec")


def _task(name: str) -> Task:
    rows = json.loads((PROGRAMS / f"{name}.json").read_text("utf-8"))
    hidden = [
        HiddenTest(
            row["category"],
            " ".join([*map(repr, row["arguments"]), *([f"with {row['stdin']!r}"] if row["stdin"] else [])]),
            {"arguments": row["arguments"], "stdin": row["stdin"], "exit_code": row["exit_code"]},
            row["expected_output"],
        )
        for row in rows
    ]
    place = TemporaryDirectory(prefix="peripety-")
    Path(place.name, f"{name}.py").write_bytes((PROGRAMS / f"{name}.py.txt").read_bytes())
    subject = InProcess(Path(place.name), f"{name}.py")
    weakref.finalize(subject, place.cleanup)
    return Task(name, _DESCRIPTIONS[name], subject, hidden)


COMMANDS = {name: partial(_task, name) for name in _DESCRIPTIONS}
"""The tasks, by name, each created on demand."""
