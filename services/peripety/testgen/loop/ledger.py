"""What a run may use of models and of time, in one place: reserved before each question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from peripety.gateway.calling.budgets import BudgetKind
from peripety.gateway.calling.budgets.refusals import BUDGET_EXHAUSTED
from peripety.gateway.model import Budget, Spent, Usage
from peripety.testgen.events import StoppedBy

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.errors import PeripetyError
    from peripety.testgen.model import TestGenOrder

__all__ = ["Account", "Ledger", "LimitReachedError", "Reservation"]

N = TypeVar("N", int, float)

_SHORTEST_ANSWER = 256
"""Tokens; a shorter answer is of no use."""

_CALLS = 4
"""Requests to a provider for one question: a repair, and repeated ones."""

_SECONDS_TO_EXAMINE = 10.0
_SHARE_TO_EXAMINE = 0.1


@dataclass(frozen=True, slots=True)
class Account:
    """What is kept with a run beside its events.

    What is reserved belongs to questions under way. Where nobody is left to settle them, and where it is not
    known what one has used, it counts as used.

    Attributes:
        spent: what questions used.
        reserved_calls: requests that questions may send.
        reserved_tokens: input and output tokens that questions may use.
        reserved_cost: money that questions may use, in 10^-12 dollars.
        worked_seconds: how long the run was worked on.
    """

    spent: Spent = Spent()  # noqa: RUF009 - frozen
    reserved_calls: int = 0
    reserved_tokens: int = 0
    reserved_cost: int = 0
    worked_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was set aside for a question.

    Attributes:
        calls: requests to providers.
        tokens: input and output together.
        cost: in 10^-12 dollars.
        output_tokens: the most that its answer may have.
        budget: the same for the gateway, which never passes it.
    """

    calls: int
    tokens: int
    cost: int
    output_tokens: int
    budget: Budget


class LimitReachedError(Exception):
    """A limit has no room for another question."""

    def __init__(self, stopped_by: StoppedBy) -> None:
        super().__init__()
        self.stopped_by = stopped_by


class Ledger:
    """Keeps account of what a run uses, and refuses what might pass a limit.

    Args:
        order: its limits: those of the config, and the caller's budget.
        account: what was used before.
        now: seconds on a clock that never goes back.
        is_measured: whether tests are run, for which questions leave some of the time.
    """

    def __init__(
        self, order: TestGenOrder, account: Account, now: Callable[[], float], *, is_measured: bool
    ) -> None:
        config, budget = order.config, order.budget
        self._account = account
        self._now = now
        self._begun = now()
        self._budget = budget
        self._tokens, self._by_tokens = _tighter(
            config.max_total_tokens, StoppedBy.MAX_TOTAL_TOKENS, budget.max_tokens
        )
        self._seconds, self._by_time = _tighter(
            config.max_total_seconds, StoppedBy.MAX_TOTAL_TIME, budget.max_seconds
        )
        to_examine = min(_SECONDS_TO_EXAMINE, self._seconds * _SHARE_TO_EXAMINE)
        self._to_examine = to_examine if is_measured else 0.0

    @property
    def account(self) -> Account:
        """The account as it is now."""
        worked = self._account.worked_seconds + self._now() - self._begun
        return replace(self._account, worked_seconds=worked)

    @property
    def seconds_left(self) -> float:
        """How much longer the run may be worked on; not above 0 when its time is over."""
        return self._seconds - self.account.worked_seconds

    @property
    def seconds_to_ask(self) -> float:
        """How much longer models may be asked."""
        return self.seconds_left - self._to_examine

    @property
    def out_of_time(self) -> LimitReachedError:
        """What to raise when the time is over."""
        return LimitReachedError(self._by_time)

    def reserve(self, prompt_tokens: int, output_tokens: int, answers: int = 1) -> Reservation:
        """Set aside what a question may use, or as much of it as there is.

        Args:
            prompt_tokens: what it has, estimated.
            output_tokens: the most that its answer should have.
            answers: how many it may take, with all repairs.

        Raises:
            LimitReachedError: another question might pass a limit.
        """
        account, budget = self._account, self._budget
        if self.seconds_to_ask <= 0:
            raise self.out_of_time
        used = account.spent.usage.input_tokens + account.spent.usage.output_tokens
        left = self._tokens - used - account.reserved_tokens
        if prompt_tokens + min(output_tokens, _SHORTEST_ANSWER) > left:
            raise LimitReachedError(self._by_tokens)
        tokens = min((prompt_tokens + output_tokens) * answers, left)
        calls = _CALLS
        if budget.max_calls is not None:
            calls = min(calls, budget.max_calls - account.spent.calls - account.reserved_calls)
        cost = 0
        if budget.max_cost is not None:
            # Money is known only when the answer is there: all that is left of it is for one question.
            spent = account.spent.cost
            cost = 0 if spent is None else budget.max_cost - spent - account.reserved_cost
        if calls <= 0 or (budget.max_cost is not None and cost <= 0):
            raise LimitReachedError(StoppedBy.BUDGET)
        self._account = replace(
            account,
            reserved_calls=account.reserved_calls + calls,
            reserved_tokens=account.reserved_tokens + tokens,
            reserved_cost=account.reserved_cost + cost,
        )
        return Reservation(
            calls,
            tokens,
            cost,
            min(output_tokens, tokens - prompt_tokens),
            Budget(
                max_calls=None if budget.max_calls is None else calls,
                max_tokens=tokens,
                max_cost=None if budget.max_cost is None else cost,
                max_seconds=self.seconds_to_ask,
            ),
        )

    def limit_of(self, error: PeripetyError) -> StoppedBy | None:
        """The limit that kept the gateway from asking, or from going on; None for any other failure."""
        if error.code != BUDGET_EXHAUSTED or error.details.get("budget") != BudgetKind.REQUEST.value:
            return None
        names = {"max_tokens": self._by_tokens, "max_time": self._by_time}
        return names.get(error.details.get("cap", ""), StoppedBy.BUDGET)

    def settle(self, reservation: Reservation, spent: Spent) -> None:
        """Account for a question that has ended, and give back what it did not use.

        Args:
            reservation: what was set aside for it.
            spent: what it used. Where neither tokens nor the cost are known, nobody knows how much that is.
        """
        account = replace(self._account, spent=self._account.spent + spent)
        if spent.cost is not None or spent.usage != Usage():
            account = replace(
                account,
                reserved_calls=account.reserved_calls - reservation.calls,
                reserved_tokens=account.reserved_tokens - reservation.tokens,
                reserved_cost=account.reserved_cost - reservation.cost,
            )
        self._account = account


def _tighter(limit: N, stopped_by: StoppedBy, cap: N | None) -> tuple[N, StoppedBy]:
    """The limit that is reached first, and what it is called."""
    return (limit, stopped_by) if cap is None or limit <= cap else (cap, StoppedBy.BUDGET)
