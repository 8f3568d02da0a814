"""A specification that is watched while it is edited: findings by line, and how games of it end.

`peripety play --watch` plays it again after every save.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from peripety import engine
from peripety.cli.input_documents import read_specification
from peripety.cli.output import document_lines, finding_lines
from peripety.errors import Finding, PeripetyError, Severity, SpecError
from peripety.scenario.validation import collect_proof_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine import Persona, Program


_POLL_SECONDS = 0.05
_PERSONAS: tuple[Persona, ...] = ("random", "greedy", "idle")
_BATCH = 64
_MAX_RUNS = 1_024
# All personas together: the figures have to be there at once, and a save may come every second.
_PERSONA_SECONDS = 0.04


class WatchedFile:
    """A file that is read again when it has changed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen = self._stamp()

    def has_changed(self) -> bool:
        """Return True if the file was saved since the last call of `accept`."""
        return self._stamp() not in {self._seen, None}

    def accept(self) -> None:
        """Take the present file as seen."""
        self._seen = self._stamp()

    async def wait(self) -> None:
        """Return when the file has changed."""
        while not self.has_changed():  # noqa: ASYNC110 - another program writes the file
            await asyncio.sleep(_POLL_SECONDS)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = Path(self.name).stat()
        except OSError:
            return None  # an editor may replace the file
        return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class DraftReport:
    """The findings and figures of a version of a file.

    Attributes:
        lines: what a designer reads.
        is_playable: True if no finding is an error.
    """

    lines: list[str]
    is_playable: bool


def measure_draft(name: str) -> DraftReport:
    """Check a specification, and play it for a fraction of a second with each of three personas."""
    began = time.perf_counter()
    try:
        content = read_specification(name)
        findings = engine.validate(content)
        is_playable = all(found.severity is not Severity.ERROR for found in findings)
        program = engine.compile(content) if is_playable else None
        proven = collect_proof_findings(program) if program is not None else ()
    except SpecError as error:
        findings, proven, program = list(error.findings), (), None
        content = b""
    except PeripetyError as error:
        return DraftReport([f"{name}: {error.message}"], is_playable=False)
    found = [*findings, *proven]
    lines = finding_lines(found, lines=document_lines(content))
    figures = list(_measure(program)) if program is not None else []
    milliseconds = (time.perf_counter() - began) * 1_000
    head = f"{name}: {_count(found)}, checked and played in {milliseconds:.0f} ms"
    is_playable = all(one.severity is not Severity.ERROR for one in found)
    return DraftReport([head, *lines, *figures], is_playable)


def _count(findings: list[Finding]) -> str:
    errors = sum(found.severity is Severity.ERROR for found in findings)
    warnings = len(findings) - errors
    parts = [
        f"{count} {what}{'' if count == 1 else 's'}"
        for count, what in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return ", ".join(parts) or "no findings"


def _measure(program: Program) -> Iterator[str]:
    """Yield a line per persona: how many of its games are lost and won."""
    for persona in _PERSONAS:
        runs = lost = won = 0
        end = time.perf_counter() + _PERSONA_SECONDS
        batch = 1 if persona == "greedy" else _BATCH
        while runs < _MAX_RUNS and (not runs or time.perf_counter() < end):
            report = program.dry_run(persona=persona, runs=batch, first_run=runs)
            runs, lost, won = runs + report.runs, lost + report.lost, won + report.won
            batch = min(batch * 2, _BATCH)
        yield f"  {persona:<7} loses {lost / runs:>4.0%}, wins {won / runs:>4.0%} of {runs:,} games"
