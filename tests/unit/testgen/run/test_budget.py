"""The ledger reserves before each question, and gives back what was not used."""

from __future__ import annotations

import pytest

from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.testgen.events import GenerationStop
from peripety.testgen.run.budget import BudgetAccount, LimitReachedError, RunBudget
from support.testgen.fake_run import order


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def ledger(account: BudgetAccount | None = None, clock: Clock | None = None, **limits: object) -> RunBudget:
    return RunBudget(
        order("alpha", **limits),
        account or BudgetAccount(),
        clock or Clock(),
        is_measured=False,
    )


def spent(tokens: int, cost: int | None = 1) -> UsageTotal:
    return UsageTotal(1, Usage(tokens, 0), cost, 0)


def test_a_reservation_is_what_the_question_may_need_and_is_handed_on_as_a_budget() -> None:
    held = ledger(max_total_tokens=10_000).reserve(1_000, 2_000)
    assert (held.tokens, held.output_tokens) == (3_000, 2_000)
    assert held.budget.max_tokens == 3_000


def test_a_question_that_may_be_repaired_has_room_for_two_answers() -> None:
    assert ledger(max_total_tokens=10_000).reserve(1_000, 500, max_responses=2).tokens == 3_000


def test_less_is_reserved_where_there_is_less_as_long_as_it_is_of_use() -> None:
    book = ledger(max_total_tokens=1_500)
    held = book.reserve(1_000, 2_000)
    assert (held.tokens, held.output_tokens) == (1_500, 500)
    with pytest.raises(LimitReachedError) as caught:
        book.reserve(1, 1)
    assert caught.value.stopped_by is GenerationStop.MAX_TOTAL_TOKENS


def test_an_answer_too_short_to_be_of_use_is_not_asked_for() -> None:
    with pytest.raises(LimitReachedError):
        ledger(max_total_tokens=1_255).reserve(1_000, 2_000)
    assert ledger(max_total_tokens=1_256).reserve(1_000, 2_000).output_tokens == 256


def test_what_was_not_used_is_given_back() -> None:
    book = ledger(max_total_tokens=4_000)
    held = book.reserve(1_000, 2_000)
    book.settle(held, spent(1_200))
    assert book.account.reserved_tokens == book.account.reserved_calls == 0
    assert book.reserve(1_000, 2_000).tokens == 2_800


def test_what_nobody_knows_stays_reserved() -> None:
    book = ledger(max_total_tokens=4_000)
    held = book.reserve(1_000, 2_000)
    book.settle(held, UsageTotal(1, cost=None, cache_savings=None))
    assert book.account.reserved_tokens == 3_000
    with pytest.raises(LimitReachedError):
        book.reserve(1_000, 2_000)


def test_an_unsettled_reservation_of_a_dead_process_counts_as_used() -> None:
    with pytest.raises(LimitReachedError):
        ledger(BudgetAccount(reserved_tokens=9_000), max_total_tokens=10_000).reserve(1_000, 2_000)


@pytest.mark.parametrize(
    ("limit", "budget", "stopped_by"),
    [
        (10, None, GenerationStop.MAX_TOTAL_TOKENS),
        (10, 10, GenerationStop.MAX_TOTAL_TOKENS),
        (10, 9, GenerationStop.BUDGET),
        (10, 11, GenerationStop.MAX_TOTAL_TOKENS),
    ],
)
def test_the_tighter_of_two_limits_is_the_one_that_is_named(
    limit: int,
    budget: int | None,
    stopped_by: GenerationStop,
) -> None:
    with pytest.raises(LimitReachedError) as caught:
        ledger(max_total_tokens=limit, budget=Budget(max_tokens=budget)).reserve(100, 100)
    assert caught.value.stopped_by is stopped_by


def test_calls_are_shared_out_and_given_back() -> None:
    book = ledger(budget=Budget(max_calls=5))
    first, second = book.reserve(1, 1), book.reserve(1, 1)
    assert (first.budget.max_calls, second.budget.max_calls) == (4, 1)
    with pytest.raises(LimitReachedError) as caught:
        book.reserve(1, 1)
    assert caught.value.stopped_by is GenerationStop.BUDGET
    book.settle(first, spent(1))
    assert book.reserve(1, 1).calls == 3


def test_money_is_reserved_for_one_question_at_a_time() -> None:
    book = ledger(budget=Budget(max_cost=100))
    held = book.reserve(1, 1)
    assert held.budget.max_cost == 100
    with pytest.raises(LimitReachedError):
        book.reserve(1, 1)
    book.settle(held, spent(1, cost=30))
    assert book.reserve(1, 1).budget.max_cost == 70


def test_money_of_which_nobody_knows_how_much_was_spent_counts_as_spent() -> None:
    book = ledger(budget=Budget(max_cost=100))
    book.settle(book.reserve(1, 1), spent(1, cost=None))
    with pytest.raises(LimitReachedError):
        book.reserve(1, 1)


def test_time_runs_on_from_what_was_worked_before() -> None:
    clock = Clock()
    book = ledger(BudgetAccount(worked_seconds=40.0), clock, max_total_seconds=60.0)
    clock.seconds = 15.0
    assert book.seconds_left == pytest.approx(5.0)
    assert book.account.worked_seconds == pytest.approx(55.0)
    assert book.reserve(1, 1).budget.max_seconds == pytest.approx(5.0)
    clock.seconds = 20.0
    with pytest.raises(LimitReachedError) as caught:
        book.reserve(1, 1)
    assert caught.value.stopped_by is GenerationStop.MAX_TOTAL_TIME


def test_some_of_the_time_is_kept_to_run_tests() -> None:
    measured = RunBudget(order("alpha", max_total_seconds=60.0), BudgetAccount(), Clock(), is_measured=True)
    assert measured.seconds_for_calls == pytest.approx(54.0)
    long = RunBudget(order("alpha", max_total_seconds=600.0), BudgetAccount(), Clock(), is_measured=True)
    assert long.seconds_for_calls == pytest.approx(590.0)


def test_the_baseline_has_a_quarter_of_the_time_beside_a_model_and_most_of_it_alone() -> None:
    limits = order("alpha", max_total_seconds=100.0)
    beside = RunBudget(limits, BudgetAccount(), Clock(), is_measured=True)
    alone = RunBudget(limits, BudgetAccount(), Clock(), is_measured=True, is_authored=False)
    assert beside.seconds_for_baseline == 25
    assert alone.seconds_for_baseline == 80
