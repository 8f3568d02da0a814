"""Budget of a run: tokens, cost, calls and time, reserved before each model call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from peripety.gateway.budgets.types import BUDGET_EXHAUSTED, BudgetAmount, BudgetKind
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.testgen.events import GenerationStop

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.errors import PeripetyError
    from peripety.testgen.types import TestGenOrder


N = TypeVar("N", int, float)

_MIN_OUTPUT_TOKENS = 256
"""Minimum output tokens of a useful response."""

_REQUESTS_PER_CALL = 4
"""Provider requests per model call, including a repair and retries."""

_MAX_EVALUATION_SECONDS = 10.0
_EVALUATION_SHARE = 0.1
_BASELINE_SHARE = 0.25
_BASELINE_SHARE_ALONE = 0.8


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """The budget account that is stored with a run.

    Reservations belong to calls in progress. If a process dies before settling one, or if the usage of a call
    is unknown, the reservation counts as used.

    Attributes:
        spent: the usage of completed calls.
        reserved_calls: reserved provider requests.
        reserved_tokens: reserved input and output tokens.
        reserved_cost: reserved cost, in 10^-12 dollars.
        worked_seconds: the working time of the run.
    """

    spent: UsageTotal = UsageTotal()  # noqa: RUF009 - frozen
    reserved_calls: int = 0
    reserved_tokens: int = 0
    reserved_cost: int = 0
    worked_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    """Budget that is reserved for a call.

    Attributes:
        calls: provider requests.
        tokens: input and output tokens together.
        cost: in 10^-12 dollars.
        output_tokens: the output token limit of the response.
        budget: the same as a gateway budget, which is never exceeded.
    """

    calls: int
    tokens: int
    cost: int
    output_tokens: int
    budget: Budget


class LimitReachedError(Exception):
    """A limit does not allow another call."""

    def __init__(self, stopped_by: GenerationStop) -> None:
        super().__init__()
        self.stopped_by = stopped_by


class RunBudget:
    """The budget of a run; it rejects calls that could exceed a limit.

    Args:
        order: the limits: those of the config, and the caller's budget.
        account: the earlier usage.
        now: returns seconds on a monotonic clock.
        is_measured: True if tests are run; calls then leave part of the time for that.
        is_authored: False if the model writes no tests of the subject; baseline tests then have all the time.
    """

    def __init__(
        self,
        order: TestGenOrder,
        account: BudgetAccount,
        now: Callable[[], float],
        *,
        is_measured: bool,
        is_authored: bool = True,
    ) -> None:
        config, budget = order.config, order.budget
        self._account = account
        self._now = now
        self._started_at = now()
        self._baseline_share = _BASELINE_SHARE if is_authored else _BASELINE_SHARE_ALONE
        self._budget = budget
        self._tokens, self._token_limit_name = _tighter_limit(
            config.max_total_tokens,
            GenerationStop.MAX_TOTAL_TOKENS,
            budget.max_tokens,
        )
        self._seconds, self._time_limit_name = _tighter_limit(
            config.max_total_seconds,
            GenerationStop.MAX_TOTAL_TIME,
            budget.max_seconds,
        )
        to_examine = min(_MAX_EVALUATION_SECONDS, self._seconds * _EVALUATION_SHARE)
        self._evaluation_seconds = to_examine if is_measured else 0.0

    @property
    def account(self) -> BudgetAccount:
        """The current budget account."""
        worked = self._account.worked_seconds + self._now() - self._started_at
        return replace(self._account, worked_seconds=worked)

    @property
    def seconds_left(self) -> float:
        """The remaining working time in seconds; not above 0 after the limit."""
        return self._seconds - self.account.worked_seconds

    @property
    def seconds_for_baseline(self) -> float:
        """The remaining time for baseline tests in seconds: beside a model, a quarter of the limit."""
        return self._seconds * self._baseline_share - self.account.worked_seconds

    @property
    def seconds_for_calls(self) -> float:
        """The remaining time for model calls in seconds."""
        return self.seconds_left - self._evaluation_seconds

    @property
    def time_limit_error(self) -> LimitReachedError:
        """The error for the time limit."""
        return LimitReachedError(self._time_limit_name)

    def reserve(self, prompt_tokens: int, output_tokens: int, max_responses: int = 1) -> BudgetReservation:
        """Reserve budget for a call, or as much as is left of it.

        Args:
            prompt_tokens: the estimated prompt size.
            output_tokens: the output token limit of a response.
            max_responses: the number of responses, including repairs.

        Raises:
            LimitReachedError: another call could exceed a limit.
        """
        account, budget = self._account, self._budget
        if self.seconds_for_calls <= 0:
            raise self.time_limit_error
        left = self._tokens - BudgetAmount.from_usage(account.spent).tokens - account.reserved_tokens
        if prompt_tokens + min(output_tokens, _MIN_OUTPUT_TOKENS) > left:
            raise LimitReachedError(self._token_limit_name)
        tokens = min((prompt_tokens + output_tokens) * max_responses, left)
        calls = _REQUESTS_PER_CALL
        if budget.max_calls is not None:
            calls = min(calls, budget.max_calls - account.spent.calls - account.reserved_calls)
        cost = 0
        if budget.max_cost is not None:
            # The cost is only known after the response, so one call reserves everything that is left.
            spent = account.spent.cost
            cost = 0 if spent is None else budget.max_cost - spent - account.reserved_cost
        if calls <= 0 or (budget.max_cost is not None and cost <= 0):
            raise LimitReachedError(GenerationStop.BUDGET)
        self._account = replace(
            account,
            reserved_calls=account.reserved_calls + calls,
            reserved_tokens=account.reserved_tokens + tokens,
            reserved_cost=account.reserved_cost + cost,
        )
        return BudgetReservation(
            calls,
            tokens,
            cost,
            min(output_tokens, tokens - prompt_tokens),
            Budget(
                max_calls=None if budget.max_calls is None else calls,
                max_tokens=tokens,
                max_cost=None if budget.max_cost is None else cost,
                max_seconds=self.seconds_for_calls,
            ),
        )

    def limit_from_error(self, error: PeripetyError) -> GenerationStop | None:
        """Return the limit that stopped a call in the gateway; None for any other error."""
        if error.code != BUDGET_EXHAUSTED or error.details.get("budget") != BudgetKind.REQUEST.value:
            return None
        names = {"max_tokens": self._token_limit_name, "max_time": self._time_limit_name}
        return names.get(error.details.get("cap", ""), GenerationStop.BUDGET)

    def settle(self, reservation: BudgetReservation, spent: UsageTotal) -> None:
        """Account for a completed call, and release the unused part of its reservation.

        Args:
            reservation: the reservation.
            spent: the usage. If neither tokens nor cost are known, the reservation remains.
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


def _tighter_limit(limit: N, stopped_by: GenerationStop, cap: N | None) -> tuple[N, GenerationStop]:
    """Return the tighter limit, and its name."""
    return (limit, stopped_by) if cap is None or limit <= cap else (cap, GenerationStop.BUDGET)
