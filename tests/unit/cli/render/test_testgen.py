"""Console output of test generation."""

from __future__ import annotations

import io
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from rich.console import Console

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import quality_pb2 as quality
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.render.testgen import TestProgressView, format_quality, format_stop_reason, live_test_view

Event = pb.TestGenEvent
START = Event.Start(
    task_description="alpha\nbeta",
    categories=[pb.Category(name="one"), pb.Category(name="two")],
)
TEST = pb.GeneratedTest(
    test_id="one_1_1",
    category="one",
    input="in\x1b[2J\nput",
    expected_output="out",
    reasoning="for a reason",
    confidence=0.8,
)
PASSED = pb.TestVerdict(status=pb.TEST_STATUS_PASSED, counts=True, new_kills=["a", "b"], new_coverage=["c"])
FINDING = common.Finding(code="EXPECTATION_NOT_MET", message="it is not so.")
FAILED = pb.TestVerdict(status=pb.TEST_STATUS_FAILED, findings=[FINDING])
QUALITY = pb.Quality(
    coverage=[
        quality.Coverage(
            kind="rule",
            covered=1,
            reachable=2,
            uncovered=["/rules/1"],
            unreachable=["/rules/2"],
        ),
    ],
    mutation=quality.MutationScore(killed=3, survived=1, equivalent=2, score=0.75),
    counting_tests=4,
)


def told(*events: pb.TestGenEvent) -> list[str]:
    out = io.StringIO()
    story = TestProgressView(Console(file=out, highlight=False, markup=False, soft_wrap=True))
    for event in events:
        story.show(event)
    return out.getvalue().splitlines()


def progress(number: int, category: str = "one", status: str = "writes") -> pb.TestGenEvent:
    going_on = Event.Progress(
        phase=pb.TEST_GEN_PHASE_CATEGORY_GENERATION,
        current_category=category,
        round_number=number,
        status=status,
    )
    return Event(progress=going_on)


def test_a_run_begins_with_its_name_its_task_and_its_categories() -> None:
    assert told(Event(run_id="run_1", start=START)) == ["run_1: alpha beta", "  categories: one, two"]


def test_a_run_says_where_its_task_is_to_be_done_and_with_what_not() -> None:
    environment = pb.EnvironmentInfo(
        platform="linux/x86_64",
        languages=["one 3.1", "two"],
        file_count=2,
        prohibited_tools=["three", "four"],
    )
    lines = told(Event(run_id="run_1", start=Event.Start(environment=environment)))
    assert "  in linux/x86_64 · one 3.1, two · 2 files · without three, four" in lines


def test_a_test_is_a_card_and_what_became_of_it_a_line() -> None:
    lines = told(
        Event(test=TEST),
        Event(test_ran=Event.TestRan(test_id="one_1_1", verdict=PASSED)),
        Event(test_ran=Event.TestRan(test_id="one_1_2", verdict=FAILED)),
        Event(test_ran=Event.TestRan(test_id="x", verdict=pb.TestVerdict(status=pb.TEST_STATUS_PASSED))),
    )
    assert lines[0] == "● one_1_1 one, confidence 80%"
    assert lines[1] == "    given    in\N{REPLACEMENT CHARACTER}[2J put"
    assert lines[2:4] == ["    expects  out", "    because  for a reason"]
    assert lines[4] == "  ✓ one_1_1 passed, kills 2 more mutants, covers 1 more target"
    assert lines[5] == "  ✗ one_1_2 failed, EXPECTATION_NOT_MET: it is not so."
    assert lines[6] == "  ✓ x passed, adds nothing"


def test_a_test_that_needed_no_model_is_one_line_unless_it_fails() -> None:
    floor = pb.GeneratedTest(
        test_id="floor1",
        category="one",
        input="i",
        expected_output="o",
        combinatorial=True,
    )
    fails = Event(test_ran=Event.TestRan(test_id="floor1", verdict=FAILED))
    passes = Event(test_ran=Event.TestRan(test_id="floor1", verdict=PASSED))
    assert told(Event(test=floor), passes) == ["○ floor1 one: i → o"]
    assert len(told(Event(test=floor), fails)) == 2


def test_a_round_is_told_once_and_a_reflection_on_one_line() -> None:
    said = pb.Reflection(category="one", text="much\n" * 1_000)
    rounds = [progress(1), progress(1, status="still"), progress(2), Event(reflection=said)]
    lines = told(*rounds)
    assert lines[:2] == ["── one, round 1", "── one, round 2"]
    assert lines[2].startswith("  ↻ one: much much")
    assert len(lines) == 3
    assert len(lines[2]) < 200


def test_a_dropped_test_says_which_one_it_repeats() -> None:
    dropped = Event.Duplicate(test=TEST, duplicate_of="floor1", level=pb.DUPLICATE_LEVEL_NEAR)
    assert told(Event(duplicate=dropped)) == ["  = one_1_1 dropped: it is nearly identical to floor1"]


def stats(**parts: Any) -> pb.TestRunStats:
    return pb.TestRunStats(
        total_tests=6,
        total_rounds=3,
        category_rounds={"two": 1, "one": 2},
        stopped_by=pb.STOPPED_BY_EXPECTED_GAIN,
        duration=Duration(seconds=2),
        **parts,
    )


def test_the_end_tells_what_the_run_says_of_itself_beside_what_was_measured() -> None:
    sums = stats(
        comprehensiveness_score=9,
        quality=QUALITY,
        uncertainties=["1 test is unstable."],
        duplicates=1,
    )
    sums.usage.calls = 4
    _, _, *lines = told(Event(start=START), Event(complete=Event.Complete(stats=sums)))
    assert lines[:4] == [
        "6 tests in 3 rounds (one 2, two 1), 1 duplicate dropped",
        "  ended: another round was not expected to add anything",
        "  by its own assessment: 9 of 10",
        "  measured: 4 of 6 tests count",
    ]
    text = "\n".join(lines)
    assert "rule coverage: 1 of 2 (50%)" in text
    assert "not covered: rule /rules/1" in text
    assert "out of reach: rule /rules/2" in text
    assert "mutants killed: 3 of 4 (75.0%), 2 more proved" in text
    assert "2.0 s · 4 calls" in text
    assert lines[-1] == "  uncertain: 1 test is unstable."


def test_what_was_not_measured_is_not_claimed() -> None:
    lines = told(Event(complete=Event.Complete(stats=stats())))
    assert "  measured: nothing, because no test was run" in lines
    assert "  by its own assessment: none" in lines


def test_every_reason_to_end_has_its_words() -> None:
    reasons = [number for number in pb.StoppedBy.values() if number]
    assert all(map(format_stop_reason, reasons))


@pytest.mark.parametrize("reflections", [3, 300])
def test_at_a_terminal_what_moves_below_the_cards_never_grows(reflections: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=24, highlight=False, markup=False)
    with live_test_view(console, 30) as story:
        story.show(Event(run_id="run_1", start=START))
        for number in range(reflections):
            story.show(Event(reflection=pb.Reflection(category="one", text=f"said {number} " * 100)))
        story.show(progress(2))
        story.show(Event(test=TEST))
        drawn = console.render_lines(story._panel.render())  # type: ignore[union-attr]
    assert len(drawn) == 4
    text = out.getvalue()
    assert "● one_1_1" in text
    assert "one, round 2" in text
    assert f"said {reflections - 1}" in text


def test_the_share_of_a_program_that_is_measured_is_told() -> None:
    nothing = quality.MutationScore()
    lines = quality.Coverage(kind="line", covered=4, reachable=4)
    measured = pb.Quality(coverage=[lines], mutation=nothing, unmeasured_lines={"library": 1_613})
    assert [*format_quality(measured, 1)][1:] == [
        "  measured: 4 of 1,617 lines; not measured: library 1,613",
        "    line coverage: 4 of 4 (100%)",
        "    mutants killed: not measured",
    ]


def test_figures_of_changed_lines_say_so() -> None:
    lines = quality.Coverage(kind="line", covered=3, reachable=4)
    score = quality.MutationScore(killed=1, survived=1, score=0.5)
    assert [*format_quality(pb.Quality(coverage=[lines], mutation=score, changed_since="main"), 1)][1:] == [
        "  measured: the lines changed since main",
        "    line coverage of the changed lines: 3 of 4 (75%)",
        "    mutants killed of the changed lines: 1 of 2 (50.0%), 0 more proved equivalent",
    ]
