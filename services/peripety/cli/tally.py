"""Batch progress and summary of a validation."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from peripety.cli.failure import FOUND_WRONG, MISUSED
from peripety.cli.output import errors, results
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.scenarios.batch import Verdict

__all__ = ["Tally", "watched"]

_SECONDS_BETWEEN_LINES = 5.0
_CODES_TOLD = 20


class Tally:
    """Counter of verdicts."""

    def __init__(self) -> None:
        self.valid = self.invalid = self.unreadable = self.undecided = 0
        self._codes: Counter[str] = Counter()
        self._started = time.perf_counter()

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        if verdict.error is not None:
            if isinstance(verdict.error, InvalidArgumentError):
                self.unreadable += 1
            else:
                self.undecided += 1
        elif verdict.accepted:
            self.valid += 1
        else:
            self.invalid += 1
        self._codes.update(finding.code for finding in verdict.findings)

    @property
    def judged(self) -> int:
        """Number of specifications with a verdict."""
        return self.valid + self.invalid

    @property
    def seconds(self) -> float:
        """Elapsed time."""
        return time.perf_counter() - self._started

    @property
    def rate(self) -> float:
        """Verdicts per second."""
        return self.judged / max(self.seconds, 1e-9)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.unreadable or self.undecided:
            return MISUSED
        return FOUND_WRONG if self.invalid else 0

    def lines(self) -> Iterator[str]:
        """Yield the lines of the summary."""
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        yield (
            f"{self.valid} valid, {self.invalid} invalid, {self.unreadable} unreadable{undecided}"
            f" in {self.seconds:.1f} s, {self.rate:,.0f} per second"
        )
        by_count = sorted(self._codes.items(), key=lambda item: (-item[1], item[0]))
        for code, count in by_count[:_CODES_TOLD]:
            yield f"  {count} {code}"
        if len(self._codes) > _CODES_TOLD:
            yield f"  ... and {len(self._codes) - _CODES_TOLD} more codes"


@contextmanager
def watched(tally: Tally, total: Callable[[], int | None]) -> Iterator[Callable[[float], None]]:
    """Show the progress of a batch.

    A terminal gets a bar, a file a line every few seconds, a short batch nothing.

    Args:
        tally: the counts.
        total: returns the number of bytes of the batch; called only if needed.

    Yields:
        A function that adds processed bytes.
    """
    if sys.stderr.isatty():
        with _bar(tally, total()) as advance:
            yield advance
    else:
        yield _Lines(tally, total).advance


@contextmanager
def _bar(tally: Tally, total: int | None) -> Iterator[Callable[[float], None]]:
    # Verdicts on the same terminal must go through the console of the bar, so that it moves down.
    console = results() if sys.stdout.isatty() else errors()
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(size: float) -> None:
            bar.update(
                task, advance=size, description=f"{tally.judged:,} checked, {tally.rate:,.0f} per second"
            )

        yield advance


class _Lines:
    def __init__(self, tally: Tally, total: Callable[[], int | None]) -> None:
        self._tally = tally
        self._total_of = total
        self._total: int | None = None
        self._done = 0.0
        self._told = 0.0

    def advance(self, size: float) -> None:
        """Count bytes, and print the progress if the last line is some seconds old."""
        self._done += size
        if self._tally.seconds - self._told < _SECONDS_BETWEEN_LINES:
            return
        if not self._told:
            self._total = self._total_of()
        self._told = self._tally.seconds
        left = ""
        if self._total and self._done:
            seconds = self._told * max(0.0, self._total / self._done - 1)
            left = f", about {seconds:,.0f} s left"
        errors().print(f"{self._tally.judged:,} checked, {self._tally.rate:,.0f} per second{left}")
