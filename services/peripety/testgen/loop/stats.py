"""Statistics of a run, and doubts about its tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.testgen.events import Stats
from peripety.testgen.loop.gain import missing
from peripety.testgen.model import TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.events import StoppedBy
    from peripety.testgen.loop.ledger import Account
    from peripety.testgen.loop.state import RunState

__all__ = ["stats_of"]

_UNSURE = 0.5


def stats_of(state: RunState, account: Account, stopped_by: StoppedBy | None = None) -> Stats:
    """Return the statistics of a run.

    Args:
        state: the state of the run.
        account: its budget account.
        stopped_by: the reason for its end; None while it is running.
    """
    rounds = {name: count for name, count in state.rounds.items() if name is not None}
    return Stats(
        total_tests=len(state.tests),
        total_rounds=state.total_rounds,
        category_rounds=rounds,
        global_rounds=state.rounds[None],
        comprehensiveness_score=state.score,
        spent=account.spent,
        seconds=account.worked_seconds,
        uncertainties=(*dict.fromkeys(state.uncertainties), *_doubts(state)),
        stopped_by=stopped_by,
        quality=state.quality,
        duplicates=len(state.dropped),
    )


def _doubts(state: RunState) -> Iterator[str]:
    """Yield doubts about the existing tests."""
    if state.verdicts and state.not_run:
        yield f"{_tests(len(state.not_run))} not run, because the time limit was reached."
    statuses = [
        verdict.examined.status for test_id, verdict in state.verdicts.items() if test_id in state.tests
    ]
    for status, what in (
        (TestStatus.FAILED, "not met by the subject; either the tests or the subject are wrong"),
        (TestStatus.UNSTABLE, "unstable"),
        (TestStatus.NOT_EXECUTABLE, "not executable"),
    ):
        if count := statuses.count(status):
            yield f"{_tests(count)} {what}."
    unsure = sum(test.confidence < _UNSURE for test in state.written)
    if unsure:
        yield f"{_tests(unsure)} of low confidence; their expectations may be guesses."
    left = missing(state.quality)
    if left:
        yield f"{left} mutants and targets are not detected by any test."


def _tests(count: int) -> str:
    return "1 test is" if count == 1 else f"{count} tests are"
