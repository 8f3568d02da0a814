"""The sums of a run, and what it is not sure about."""

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
    """The sums of a run as it stands.

    Args:
        state: the run.
        account: what it used.
        stopped_by: why it ends; None while it goes on.
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
    """What is not sure of the tests that there are."""
    if state.verdicts and state.not_run:
        yield f"{_tests(len(state.not_run))} not run: there was no time left."
    statuses = [
        verdict.examined.status for test_id, verdict in state.verdicts.items() if test_id in state.tests
    ]
    for status, what in (
        (TestStatus.FAILED, "not met by the subject: either they are wrong, or it is"),
        (TestStatus.UNSTABLE, "unstable"),
        (TestStatus.NOT_EXECUTABLE, "not executable"),
    ):
        if count := statuses.count(status):
            yield f"{_tests(count)} {what}."
    unsure = sum(test.confidence < _UNSURE for test in state.written)
    if unsure:
        yield f"{_tests(unsure)} of low confidence by their author: what they expect may be a guess."
    left = missing(state.quality)
    if left:
        yield f"{left} mutants and targets that tests should notice are left."


def _tests(count: int) -> str:
    return "1 test is" if count == 1 else f"{count} tests are"
