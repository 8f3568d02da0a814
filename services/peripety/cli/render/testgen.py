"""Output of test generation: a card per test, one line per run, and a live status panel on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.output import format_model_usage, one_line, printable
from peripety.cli.render.policy import format_count, format_coverage, format_mutation_score
from peripety.rpc.proto_json import enum_word
from peripety.testgen.types import CHANGED_LINES_SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, RenderableType

    from peripety.api.common.v1 import common_pb2


_STATUS = pb.TestVerdict.DESCRIPTOR.fields_by_name["status"]
_PHASE = pb.TestGenEvent.Progress.DESCRIPTOR.fields_by_name["phase"]
_LEVEL = pb.TestGenEvent.Duplicate.DESCRIPTOR.fields_by_name["level"]
_STOPPED = {
    pb.STOPPED_BY_SATISFIED: "the tests were complete",
    pb.STOPPED_BY_TARGET_TOTAL_TESTS: "the target number of tests was reached",
    pb.STOPPED_BY_MAX_TOTAL_ROUNDS: "all rounds were used",
    pb.STOPPED_BY_MAX_TOTAL_TOKENS: "another request might have exceeded the token limit",
    pb.STOPPED_BY_MAX_TOTAL_TIME: "the time limit was reached",
    pb.STOPPED_BY_EXPECTED_GAIN: "another round was not expected to add anything",
    pb.STOPPED_BY_CANCELLED: "it was cancelled",
    pb.STOPPED_BY_BUDGET: "the budget might have been exceeded",
    pb.STOPPED_BY_ROUNDS_USED: "every category and the refinement used its rounds",
    pb.STOPPED_BY_ERROR: "it failed",
}
_LONGEST = 160
_SHOWN = 10


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(one_line(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def format_card(test: pb.GeneratedTest) -> Iterator[str]:
    """Format a test: id first, then input, expectation and reason; one line for a baseline test."""
    expected = shorten(test.expected_output) if test.HasField("expected_output") else ""
    name, category = one_line(test.test_id), one_line(test.category)
    if test.combinatorial:
        yield f"○ {name} {category}: {shorten(test.input)}{expected and ' → '}{expected}"
        return
    yield f"● {name} {category}, confidence {test.confidence:.0%}"
    yield f"    given    {shorten(test.input)}"
    if expected:
        yield f"    expects  {expected}"
    if test.reasoning:
        yield f"    because  {shorten(test.reasoning)}"
    if test.source:
        yield f"    source   {shorten(test.source)}"
    elif test.WhichOneof("body"):
        yield "    source   none; it describes what the subject does today"
    if test.replaces:
        yield f"    replaces {one_line(test.replaces)}"


def format_verdict(test_id: str, verdict: pb.TestVerdict) -> str:
    """Format the result of a test."""
    passed = verdict.status == pb.TEST_STATUS_PASSED
    told = [enum_word(_STATUS, verdict.status).replace("_", " ")]
    if verdict.new_kills:
        told.append(f"kills {format_count(len(verdict.new_kills), 'more mutant')}")
    if verdict.new_coverage:
        told.append(f"covers {format_count(len(verdict.new_coverage), 'more target')}")
    if passed and not verdict.counts:
        told.append("adds nothing")
    told.extend(f"{one.code}: {shorten(one.message)}" for one in verdict.findings)
    return f"  {'✓' if passed else '✗'} {one_line(test_id)} {', '.join(told)}"


def format_duplicate(duplicate: pb.TestGenEvent.Duplicate) -> str:
    """Format a dropped duplicate and the reason."""
    same = {
        pb.DUPLICATE_LEVEL_CANONICAL: "has the same input as",
        pb.DUPLICATE_LEVEL_NEAR: "is nearly identical to",
        pb.DUPLICATE_LEVEL_KILLS: "catches the same mutants as",
    }.get(duplicate.level, enum_word(_LEVEL, duplicate.level))
    one, other = one_line(duplicate.test.test_id), one_line(duplicate.duplicate_of)
    return f"  = {one} dropped: it {same} {other}"


def format_reflection(reflection: pb.Reflection) -> str:
    """Format the reflection on a category, or on all, on one line."""
    about = one_line(reflection.category) if reflection.HasField("category") else "all categories"
    return f"  ↻ {about}: {shorten(reflection.text)}"


def format_fence(*, is_fenced: bool) -> str:
    """Return a line about the fence of a command."""
    return "  fenced: yes" if is_fenced else "  fenced: no (the command reads and changes what its user may)"


def format_environment(environment: pb.EnvironmentInfo) -> str:
    """Format the environment of the task."""
    told = [
        environment.platform,
        ", ".join(environment.languages),
        format_count(environment.file_count, "file"),
    ]
    if environment.prohibited_tools:
        told.append(f"without {', '.join(environment.prohibited_tools)}")
    return f"  in {' · '.join(one_line(part) for part in told if part)}"


def format_error(error: common_pb2.ItemError) -> str:
    """Format the error of a failed run."""
    return f"error: {printable(error.message)} ({one_line(error.reason)})"


def format_phase(progress: pb.TestGenEvent.Progress) -> str:
    """Format the current phase of a run."""
    doing = enum_word(_PHASE, progress.phase).replace("_", " ")
    where = one_line(progress.current_category) if progress.HasField("current_category") else doing
    return f"{where}, round {progress.round_number}" if progress.round_number else where


def format_stop_reason(stopped_by: pb.StoppedBy.ValueType) -> str:
    """Return the reason that a run ended; empty while it is in progress."""
    return _STOPPED.get(stopped_by, "")


def format_stats(stats: pb.TestRunStats, categories: Iterable[pb.Category]) -> Iterator[str]:
    """Format the statistics of a run: its own assessment, and the measurements.

    Args:
        stats: the statistics.
        categories: the categories of the run, in order.
    """
    names = [category.name for category in categories if category.name in stats.category_rounds]
    rounds = [f"{one_line(name)} {stats.category_rounds[name]}" for name in names]
    rounds += [f"refinement {stats.global_rounds}"] if stats.global_rounds else []
    dropped = f", {format_count(stats.duplicates, 'duplicate')} dropped" if stats.duplicates else ""
    each = f" ({', '.join(rounds)})" if rounds else ""
    yield (
        f"{format_count(stats.total_tests, 'test')} in "
        f"{format_count(stats.total_rounds, 'round')}{each}{dropped}"
    )
    if stats.stopped_by:
        yield f"  ended: {format_stop_reason(stats.stopped_by)}"
    score = f"{stats.comprehensiveness_score} of 10" if stats.HasField("comprehensiveness_score") else "none"
    yield f"  by its own assessment: {score}"
    if stats.HasField("quality"):
        yield from format_quality(stats.quality, stats.total_tests)
    else:
        yield "  measured: nothing, because no test was run"
    used = f"  {stats.duration.ToTimedelta().total_seconds():.1f} s"
    yield (
        f"{used} · {format_model_usage(stats.usage)}" if stats.usage.calls else f"{used}, no model was called"
    )
    for doubt in stats.uncertainties:
        yield f"  uncertain: {one_line(doubt)}"


def format_quality(quality: pb.Quality, tests: int) -> Iterator[str]:
    """Format the measured quality of a number of tests."""
    yield f"  measured: {quality.counting_tests:,} of {format_count(tests, 'test')} count"
    if quality.unmeasured_lines:
        yield f"  measured: {_format_scope(quality)}"
    scope = CHANGED_LINES_SCOPE if quality.changed_since else ""
    if quality.changed_since:
        yield f"  measured: the lines changed since {one_line(quality.changed_since)}"
    yield from (f"  {line}" for line in format_coverage(quality.coverage, scope))
    for kind in quality.coverage:
        yield from _format_paths("not covered", kind.kind, kind.uncovered)
        yield from _format_paths("out of reach", kind.kind, kind.unreachable)
    if quality.HasField("mutation"):
        yield from (f"  {line}" for line in format_mutation_score(quality.mutation, scope))


def _format_scope(quality: pb.Quality) -> str:
    """Format the share of a program that is measured."""
    measured = sum(one.reachable for one in quality.coverage)
    total = measured + sum(quality.unmeasured_lines.values())
    left = (f"{one_line(name)} {lines:,}" for name, lines in sorted(quality.unmeasured_lines.items()))
    return f"{measured:,} of {total:,} lines; not measured: {', '.join(left)}"


def _format_paths(what: str, kind: str, paths: Iterable[str]) -> Iterator[str]:
    """Format targets by name. A long list is truncated, with a note."""
    named = [shorten(path) for path in paths]
    if named:
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        yield f"      {what}: {kind.replace('_', '/')} {', '.join(named[:_SHOWN])}{more}"


_REFLECTIONS = 3


@contextmanager
def live_test_view(out: Console, target: int) -> Iterator[TestProgressView]:
    """Yield a progress view. The panel below the cards is shown only on a terminal.

    Args:
        out: the console.
        target: the number of tests that the bar measures against.
    """
    if not out.is_terminal:
        yield TestProgressView(out)
        return
    panel = _StatusPanel(target)
    with Live(get_renderable=panel.render, console=out, transient=True):
        yield TestProgressView(out, panel)


class _StatusPanel:
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

    def render(self) -> RenderableType:
        """Return the current content of the panel."""
        lines = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._reflections]
        return Group(*lines, self._bar)


class TestProgressView:
    """Console output of the events of a test generation.

    Args:
        out: the console.
        panel: the status panel; None without a terminal.
    """

    __test__ = False

    def __init__(self, out: Console, panel: _StatusPanel | None = None) -> None:
        self._out = out
        self._panel = panel
        self._written_tests = 0
        self._current_phase = ""
        self._baseline_count: set[str] = set()
        self._categories: list[pb.Category] = []

    def show(self, event: pb.TestGenEvent) -> None:
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
                self._print(format_duplicate(event.duplicate), "dim")
            case "test_ran":
                self._show_result(event.test_ran)
            case "complete":
                self._lines(format_stats(event.complete.stats, self._categories))

    def _start(self, run_id: str, start: pb.TestGenEvent.Start) -> None:
        self._categories = [*start.categories]
        names = ", ".join(one_line(category.name) for category in start.categories)
        self._print(f"{one_line(run_id)}: {shorten(start.task_description)}", "bold")
        if start.HasField("environment"):
            self._print(format_environment(start.environment))
        if start.HasField("fenced"):
            self._print(format_fence(is_fenced=start.fenced))
        self._print(f"  categories: {names}")
        if start.suggested_profile == pb.TEST_GEN_PROFILE_REASONING:
            self._print("  suggested: --profile reasoning (900 s, 200,000 tokens), because the model reasons")

    def _progress(self, progress: pb.TestGenEvent.Progress) -> None:
        doing = format_phase(progress)
        if self._panel is not None:
            self._panel.progress(f"{doing}: {shorten(progress.status)}", self._written_tests)
            self._current_phase = doing
        elif progress.round_number and doing != self._current_phase:
            self._print(f"── {doing}", "dim")
            self._current_phase = doing

    def _test(self, test: pb.GeneratedTest) -> None:
        if test.combinatorial:
            self._baseline_count.add(test.test_id)
        else:
            self._written_tests += 1
        first, *others = format_card(test)
        self._print(first, "dim" if test.combinatorial else "bold")
        self._lines(others)
        if self._panel is not None:
            self._panel.progress(self._current_phase, self._written_tests)

    def _show_result(self, ran: pb.TestGenEvent.TestRan) -> None:
        passed = ran.verdict.status == pb.TEST_STATUS_PASSED
        # Baseline tests are many and always pass, because they expect what the subject does.
        if not (passed and ran.test_id in self._baseline_count):
            style = "green" if ran.verdict.counts else "" if passed else "yellow"
            self._print(format_verdict(ran.test_id, ran.verdict), style)

    def _reflection(self, reflection: pb.Reflection) -> None:
        line = format_reflection(reflection)
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
