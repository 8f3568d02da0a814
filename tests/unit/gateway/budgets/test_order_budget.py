"""Remaining budget of an order, and the error when it is too small."""

from __future__ import annotations

import pytest

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.budgets.order_budget import OrderBudget
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal

CENT = 10**10
ANSWER = UsageTotal(
    2,
    Usage(input_tokens=70, output_tokens=30, cache_read_tokens=40),
    cost=CENT,
    cache_savings=5,
)
BUDGET = Budget(max_calls=3, max_tokens=1_000, max_cost=2 * CENT, max_seconds=60)


class Watch:
    """Clock that moves only when it is set."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def allowance(watch: Watch | None = None, answers: int = 4, budget: Budget = BUDGET) -> OrderBudget:
    return OrderBudget(budget, answers, watch or Watch())


def test_the_next_request_may_use_what_is_left() -> None:
    watch = Watch()
    order = allowance(watch)
    order.count_request()
    order.add_usage(ANSWER)
    watch.seconds += 20
    assert order.remaining() == Budget(max_calls=1, max_tokens=900, max_cost=CENT, max_seconds=40)
    assert order.find_exhausted_limit() is None


def test_without_caps_there_is_no_end_to_it_but_the_answers() -> None:
    order = allowance(answers=2, budget=Budget())
    for _ in range(2):
        assert order.find_exhausted_limit() is None
        order.count_request()
        order.add_usage(ANSWER)
    finding = order.find_exhausted_limit()
    assert finding is not None
    assert (finding.code, finding.message) == (
        "BUDGET_EXHAUSTED",
        "limit of 2 answers reached; raise the limit",
    )
    assert order.remaining() == Budget()


def test_an_order_is_late_from_the_end_of_its_time_on_whatever_else_is_left() -> None:
    watch = Watch()
    order, unlimited = allowance(watch), allowance(watch, budget=Budget(max_calls=0))
    watch.seconds += 59
    assert not order.is_expired
    watch.seconds += 1
    assert order.is_expired
    assert not unlimited.is_expired


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        (Budget(max_calls=2), "budget of 2 calls exhausted: 2 used"),
        (Budget(max_tokens=100), "budget of 100 tokens exhausted: 100 used"),
        (Budget(max_cost=CENT), "budget of $0.01 exhausted: $0.01 used"),
        (Budget(max_seconds=20), "time limit of 20 s exceeded"),
    ],
)
def test_a_cap_that_is_reached_is_named_with_what_was_used_of_it(budget: Budget, told: str) -> None:
    watch = Watch()
    order = allowance(watch, budget=budget)
    order.add_usage(ANSWER)
    watch.seconds += 20
    finding = order.find_exhausted_limit()
    assert finding is not None
    assert (finding.code, finding.path) == ("BUDGET_EXHAUSTED", "")
    assert finding.message.startswith(told)
    with pytest.raises(ResourceExhaustedError):
        order.remaining()


def exhausted(budget: str, cap: str) -> ResourceExhaustedError:
    return ResourceExhaustedError("no", code="BUDGET_EXHAUSTED", details={"budget": budget, "cap": cap})


def test_a_call_for_which_too_little_was_left_is_told_by_what_the_whole_order_used() -> None:
    order = allowance()
    order.add_usage(ANSWER)
    finding = order.add_failed_usage(exhausted("request", "max_cost"))
    assert finding is not None
    assert "budget of $0.02 exhausted: $0.01 used" in finding.message
    assert order.spent == ANSWER


@pytest.mark.parametrize(
    ("error", "spent"),
    [
        (exhausted("day", "max_cost"), UsageTotal()),
        (
            UnavailableError("broken off", code="STREAM_TRUNCATED"),
            UsageTotal(1, cost=None, cache_savings=None),
        ),
        (InvalidArgumentError("too long", code="CONTEXT_LENGTH_EXCEEDED"), UsageTotal(1)),
        (
            FailedPreconditionError(
                "no",
                code="ANSWER_REFUSED",
                details={
                    "calls": "2",
                    "input_tokens": "5",
                    "output_tokens": "6",
                    "cache_read_tokens": "0",
                    "cache_write_tokens": "0",
                    "reasoning_tokens": "0",
                    "long_cache_write_tokens": "0",
                    "cost": "7",
                    "cache_savings": "0",
                },
            ),
            UsageTotal(2, Usage(5, 6), 7, 0),
        ),
    ],
)
def test_any_other_failure_counts_what_it_is_known_to_have_used(
    error: PeripetyError,
    spent: UsageTotal,
) -> None:
    order = allowance()
    assert order.add_failed_usage(error) is None
    assert order.spent == spent


def test_an_answer_that_time_ended_cost_nobody_knows_what() -> None:
    order = allowance()
    finding = order.add_failed_usage(exhausted("request", "max_time"))
    assert finding is not None
    assert finding.message == "time limit of 60 s exceeded; raise the limit"
    assert order.spent == UsageTotal(1, cost=None, cache_savings=None)
