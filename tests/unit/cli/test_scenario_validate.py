"""Console output of batch validation, during the run and at its end."""

from __future__ import annotations

import pytest

from peripety.cli.scenario_validate import BatchTally, batch_progress
from peripety.errors import InvalidArgumentError, ResourceExhaustedError
from peripety.scenario.batch import BatchOptions, DocumentVerdict
from support.scenario.batches import EASY, GOOD, WRONG, verdicts

SLOW = DocumentVerdict(error=ResourceExhaustedError("too slow", code="DRY_RUN_TOO_SLOW"))
GONE = DocumentVerdict(error=InvalidArgumentError("gone", code="UNREADABLE"))


class Clock:
    """Clock that moves only when it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("peripety.cli.scenario_validate.time.perf_counter", clock)
    return clock


def of(*documents: bytes) -> list[DocumentVerdict]:
    return list(verdicts(list(enumerate(documents)), BatchOptions()).values())


@pytest.mark.parametrize(
    ("counted", "code"),
    [([], 0), (of(GOOD, EASY), 0), (of(GOOD, WRONG), 1), ([*of(WRONG), GONE], 2), ([*of(GOOD), SLOW], 2)],
)
def test_the_exit_code_is_that_of_the_worst(counted: list[DocumentVerdict], code: int) -> None:
    tally = BatchTally()
    for verdict in counted:
        tally.add(verdict)
    assert tally.exit_code == code


def test_the_summary_counts_verdicts_and_what_was_found(clock: Clock) -> None:
    tally = BatchTally()
    for verdict in [*of(GOOD, WRONG, b"{"), SLOW, GONE]:
        tally.add(verdict)
    clock.now = 0.5
    first, *codes = tally.summary_lines()
    assert first == "1 valid, 2 invalid, 1 unreadable, 1 undecided in 0.5 s, 6 per second"
    assert codes == ["  1 INVALID_JSON", "  1 WRONG_TYPE"]


def test_long_work_without_a_terminal_is_told_every_few_seconds(
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = BatchTally()
    (good,) = of(GOOD)
    with batch_progress(tally, lambda: 1_000) as advance:
        for second in range(1, 12):
            clock.now = second
            tally.add(good)
            advance(50)
    assert capsys.readouterr().err.splitlines() == [
        "5 checked, 1 per second, about 15 s left",
        "10 checked, 1 per second, about 10 s left",
    ]


def test_short_work_is_not_told_of(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    tally = BatchTally()
    with batch_progress(tally, lambda: pytest.fail("nobody asks")) as advance:
        clock.now = 4.9
        advance(50)
    assert not capsys.readouterr().err
