"""Progress output of a test generation: a card per test, and a live status panel on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.testgen_telling import (
    card_lines,
    duplicate_line,
    environment_line,
    phase_words,
    reflection_line,
    short,
    stats_lines,
    verdict_line,
)
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, RenderableType

__all__ = ["TestStory", "live_test_story"]

_REFLECTIONS = 3


@contextmanager
def live_test_story(out: Console, target: int) -> Iterator[TestStory]:
    """Yield a progress view. The panel below the cards is shown only on a terminal.

    Args:
        out: the console.
        target: the number of tests that the bar measures against.
    """
    if not out.is_terminal:
        yield TestStory(out)
        return
    panel = _Panel(target)
    with Live(get_renderable=panel.drawn, console=out, transient=True):
        yield TestStory(out, panel)


class _Panel:
    """Status panel: a bar and the last few reflections, one line each, so that its height is bounded."""

    def __init__(self, target: int) -> None:
        columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
        self._bar = Progress(*columns)
        self._task = self._bar.add_task("", total=target)
        self._reflections: tuple[str, ...] = ()  # replaced, never mutated: another thread draws it

    def progress(self, words: str, tests: int) -> None:
        """Update the progress."""
        self._bar.update(self._task, completed=tests, description=words)

    def reflection(self, line: str) -> None:
        """Show the latest reflection."""
        self._reflections = (*self._reflections, line)[-_REFLECTIONS:]

    def drawn(self) -> RenderableType:
        """Return the current content of the panel."""
        lines = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._reflections]
        return Group(*lines, self._bar)


class TestStory:
    """Console output of the events of a test generation.

    Args:
        out: the console.
        panel: the status panel; None without a terminal.
    """

    __test__ = False

    def __init__(self, out: Console, panel: _Panel | None = None) -> None:
        self._out = out
        self._panel = panel
        self._written = 0
        self._doing = ""
        self._floor: set[str] = set()
        self._categories: list[pb.Category] = []

    def tell(self, event: pb.TestGenEvent) -> None:
        """Print one event."""
        match event.WhichOneof("event"):
            case "start":
                self._start(event.run_id, event.start)
            case "progress":
                self._progress(event.progress)
            case "test":
                self._test(event.test)
            case "reflection":
                self._reflection(event.reflection)
            case "duplicate":
                self._print(duplicate_line(event.duplicate), "dim")
            case "test_ran":
                self._ran(event.test_ran)
            case "complete":
                self._lines(stats_lines(event.complete.stats, self._categories))

    def _start(self, run_id: str, start: pb.TestGenEvent.Start) -> None:
        self._categories = [*start.categories]
        names = ", ".join(in_one_line(category.name) for category in start.categories)
        self._print(f"{in_one_line(run_id)}: {short(start.task_description)}", "bold")
        if start.HasField("environment"):
            self._print(environment_line(start.environment))
        self._print(f"  categories: {names}")

    def _progress(self, progress: pb.TestGenEvent.Progress) -> None:
        doing = phase_words(progress)
        if self._panel is not None:
            self._panel.progress(f"{doing}: {short(progress.status)}", self._written)
            self._doing = doing
        elif progress.round_number and doing != self._doing:
            self._print(f"── {doing}", "dim")
            self._doing = doing

    def _test(self, test: pb.GeneratedTest) -> None:
        if test.combinatorial:
            self._floor.add(test.test_id)
        else:
            self._written += 1
        first, *others = card_lines(test)
        self._print(first, "dim" if test.combinatorial else "bold")
        self._lines(others)
        if self._panel is not None:
            self._panel.progress(self._doing, self._written)

    def _ran(self, ran: pb.TestGenEvent.TestRan) -> None:
        passed = ran.verdict.status == pb.TEST_STATUS_PASSED
        # Baseline tests are many and always pass, because they expect what the subject does.
        if not (passed and ran.test_id in self._floor):
            style = "green" if ran.verdict.counts else "" if passed else "yellow"
            self._print(verdict_line(ran.test_id, ran.verdict), style)

    def _reflection(self, reflection: pb.Reflection) -> None:
        line = reflection_line(reflection)
        if self._panel is None:
            self._print(line, "dim")
        else:
            self._panel.reflection(line)

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._print(line)

    def _print(self, line: str, style: str = "") -> None:
        # A style passed to `print` would also apply to the live panel below.
        self._out.print(Text(line, style))
