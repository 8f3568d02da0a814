"""Formatting of generated tests and their runs, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.jsonify import enum_word
from peripety.cli.policy_telling import counted, coverage_lines, mutation_lines
from peripety.cli.spending import model_usage_line
from peripety.cli.text import in_one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.api.common.v1 import common_pb2

__all__ = [
    "card_lines",
    "duplicate_line",
    "environment_line",
    "error_line",
    "phase_words",
    "quality_lines",
    "reflection_line",
    "short",
    "stats_lines",
    "stopped_words",
    "verdict_line",
]

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


def short(text: str, longest: int = _LONGEST) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(in_one_line(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def card_lines(test: pb.GeneratedTest) -> Iterator[str]:
    """Format a test: id first, then input, expectation and reason; one line for a baseline test."""
    expected = short(test.expected_output) if test.HasField("expected_output") else ""
    name, category = in_one_line(test.test_id), in_one_line(test.category)
    if test.combinatorial:
        yield f"○ {name} {category}: {short(test.input)}{expected and ' → '}{expected}"
        return
    yield f"● {name} {category}, confidence {test.confidence:.0%}"
    yield f"    given    {short(test.input)}"
    if expected:
        yield f"    expects  {expected}"
    if test.reasoning:
        yield f"    because  {short(test.reasoning)}"


def verdict_line(test_id: str, verdict: pb.TestVerdict) -> str:
    """Format the result of a test."""
    passed = verdict.status == pb.TEST_STATUS_PASSED
    told = [enum_word(_STATUS, verdict.status).replace("_", " ")]
    if verdict.new_kills:
        told.append(f"kills {counted(len(verdict.new_kills), 'more mutant')}")
    if verdict.new_coverage:
        told.append(f"covers {counted(len(verdict.new_coverage), 'more target')}")
    if passed and not verdict.counts:
        told.append("adds nothing")
    told.extend(f"{one.code}: {short(one.message)}" for one in verdict.findings)
    return f"  {'✓' if passed else '✗'} {in_one_line(test_id)} {', '.join(told)}"


def duplicate_line(duplicate: pb.TestGenEvent.Duplicate) -> str:
    """Format a dropped duplicate and the reason."""
    same = {
        pb.DUPLICATE_LEVEL_CANONICAL: "has the same input as",
        pb.DUPLICATE_LEVEL_NEAR: "is nearly identical to",
        pb.DUPLICATE_LEVEL_KILLS: "catches the same mutants as",
    }.get(duplicate.level, enum_word(_LEVEL, duplicate.level))
    one, other = in_one_line(duplicate.test.test_id), in_one_line(duplicate.duplicate_of)
    return f"  = {one} dropped: it {same} {other}"


def reflection_line(reflection: pb.Reflection) -> str:
    """Format the reflection on a category, or on all, on one line."""
    about = in_one_line(reflection.category) if reflection.HasField("category") else "all categories"
    return f"  ↻ {about}: {short(reflection.text)}"


def environment_line(environment: pb.EnvironmentInfo) -> str:
    """Format the environment of the task."""
    told = [environment.platform, ", ".join(environment.languages), counted(environment.file_count, "file")]
    if environment.prohibited_tools:
        told.append(f"without {', '.join(environment.prohibited_tools)}")
    return f"  in {' · '.join(in_one_line(part) for part in told if part)}"


def error_line(error: common_pb2.ItemError) -> str:
    """Format the error of a failed run."""
    return f"error: {printable(error.message)} ({in_one_line(error.reason)})"


def phase_words(progress: pb.TestGenEvent.Progress) -> str:
    """Format the current phase of a run."""
    doing = enum_word(_PHASE, progress.phase).replace("_", " ")
    where = in_one_line(progress.current_category) if progress.HasField("current_category") else doing
    return f"{where}, round {progress.round_number}" if progress.round_number else where


def stopped_words(stopped_by: pb.StoppedBy.ValueType) -> str:
    """Return the reason that a run ended; empty while it is in progress."""
    return _STOPPED.get(stopped_by, "")


def stats_lines(stats: pb.TestRunStats, categories: Iterable[pb.Category]) -> Iterator[str]:
    """Format the statistics of a run: its own assessment, and the measurements.

    Args:
        stats: the statistics.
        categories: the categories of the run, in order.
    """
    names = [category.name for category in categories if category.name in stats.category_rounds]
    rounds = [f"{in_one_line(name)} {stats.category_rounds[name]}" for name in names]
    rounds += [f"refinement {stats.global_rounds}"] if stats.global_rounds else []
    dropped = f", {counted(stats.duplicates, 'duplicate')} dropped" if stats.duplicates else ""
    each = f" ({', '.join(rounds)})" if rounds else ""
    yield f"{counted(stats.total_tests, 'test')} in {counted(stats.total_rounds, 'round')}{each}{dropped}"
    if stats.stopped_by:
        yield f"  ended: {stopped_words(stats.stopped_by)}"
    score = f"{stats.comprehensiveness_score} of 10" if stats.HasField("comprehensiveness_score") else "none"
    yield f"  by its own assessment: {score}"
    if stats.HasField("quality"):
        yield from quality_lines(stats.quality, stats.total_tests)
    else:
        yield "  measured: nothing, because no test was run"
    used = f"  {stats.duration.ToTimedelta().total_seconds():.1f} s"
    yield f"{used} · {model_usage_line(stats.usage)}" if stats.usage.calls else f"{used}, no model was called"
    for doubt in stats.uncertainties:
        yield f"  uncertain: {in_one_line(doubt)}"


def quality_lines(quality: pb.Quality, tests: int) -> Iterator[str]:
    """Format the measured quality of a number of tests."""
    yield f"  measured: {quality.counting_tests:,} of {counted(tests, 'test')} count"
    yield from (f"  {line}" for line in coverage_lines(quality.coverage))
    for kind in quality.coverage:
        yield from _paths("not covered", kind.kind, kind.uncovered)
        yield from _paths("out of reach", kind.kind, kind.unreachable)
    if quality.HasField("mutation"):
        yield from (f"  {line}" for line in mutation_lines(quality.mutation))


def _paths(what: str, kind: str, paths: Iterable[str]) -> Iterator[str]:
    """Format targets by name. A long list is truncated, with a note."""
    named = [short(path) for path in paths]
    if named:
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        yield f"      {what}: {kind.replace('_', '/')} {', '.join(named[:_SHOWN])}{more}"
