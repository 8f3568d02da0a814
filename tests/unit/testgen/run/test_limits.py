"""Limits stop everything, are named at the end, and cost no test that was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import ResourceExhaustedError
from peripety.gateway.budgets.types import time_limit_error
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.types.request import Budget, ReasoningEffort
from peripety.testgen.events import GenerationCompleted, GenerationStop, TestAdded, TestRan
from support.servers.virtual_time import in_virtual_time
from support.testgen.fake_run import (
    POOR,
    WANTING,
    Author,
    Book,
    Cut,
    Inline,
    NumberedSubject,
    Paused,
    Question,
    about,
    always,
    order,
    ran,
    some,
    written,
)

if TYPE_CHECKING:
    from peripety.testgen.subjects.subject import Subject
    from peripety.testgen.types import TestGenOrder


def used(book: Book) -> int:
    usage = book.stats.spent.usage
    return usage.input_tokens + usage.output_tokens


def in_time(
    author: Author,
    what: TestGenOrder,
    subject: Subject | None = None,
    *,
    takes: float = 0.0,
) -> tuple[Book, float]:
    """Work on a run by a clock that costs no time; return its book, and how late it is at the end."""

    async def scene(clock: Any) -> tuple[Book, float]:
        book = await ran(author, what, subject, worker=Inline(takes))
        return book, clock.now()

    return in_virtual_time(scene)


async def test_tokens_stop_all_loops_keep_every_test_and_are_named() -> None:
    author = always(lambda question: some(question, 3), reflection=WANTING, assessment=POOR)
    book = await ran(author, order("alpha", "beta", "gamma", max_total_tokens=14_000))
    assert book.stopped_by == "max_total_tokens"
    assert used(book) <= 14_000
    assert len(book.suite) == 3 * len(author.of_kind("tests")) > 0
    assert book.stats.total_tests == len(book.suite)


async def test_no_question_is_asked_for_which_there_are_too_few_tokens() -> None:
    author = always()
    book = await ran(author, order("alpha", max_total_tokens=500))
    assert not author.questions
    assert isinstance(book.last, GenerationCompleted)
    assert book.stopped_by == "max_total_tokens"
    assert book.stats.total_rounds == 0


async def test_what_a_question_may_use_is_reserved_and_written_down_before_it_is_asked() -> None:
    books: list[int] = []

    def tests(question: Question) -> Any:
        books.append(book.account.reserved_tokens)
        budget = question.request.budget
        assert budget is not None
        assert budget.max_tokens == book.account.reserved_tokens
        assert question.request.max_output_tokens is not None
        return some(question)

    author, book = always(tests), Book()
    await ran(author, order("alpha", "beta", max_total_tokens=90_000), book=book)
    assert len(books) == 2
    assert all(0 < reserved <= 90_000 for reserved in books)
    assert book.account.reserved_tokens == 0


async def test_the_last_answer_is_as_long_as_the_tokens_that_are_left() -> None:
    whole = always(lambda question: some(question, 3))
    await ran(whole, order("alpha"))
    longest = whole.questions[0].request.max_output_tokens
    tight = always(lambda question: some(question, 3))
    await ran(tight, order("alpha", max_total_tokens=4_000))
    shorter = tight.questions[0].request.max_output_tokens
    assert shorter is not None
    assert longest is not None
    assert 256 <= shorter < longest


async def test_an_answer_that_reaches_its_length_keeps_its_whole_tests() -> None:
    author = always(lambda question: [*some(question, 2), '{"input": "cut', Cut()])
    book = await ran(author, order("alpha", enable_global_refinement=False, max_rounds_per_category=1))
    assert [test.input for test in book.suite] == ["alpha 1 one", "alpha 1 two"]
    assert any("were not tests" in doubt for doubt in book.stats.uncertainties)


def test_time_that_is_over_in_a_round_keeps_what_was_made_and_begins_nothing_more() -> None:
    slow = always(lambda question: [*some(question, 2), Paused(60.0), written("too late")])
    book, late = in_time(slow, order("alpha", "beta", "gamma", max_total_seconds=100.0))
    assert late == pytest.approx(100.0, abs=0.1)
    assert [question.place for question in slow.of_kind("tests")] == [("alpha", 1), ("beta", 1)]
    assert slow.questions[-1].kind == "tests"
    assert [test.input for test in book.suite] == [
        "alpha 1 one",
        "alpha 1 two",
        "too late",
        "beta 1 one",
        "beta 1 two",
    ]
    assert book.stopped_by == "max_total_time"
    assert book.stats.seconds <= 100.1


def test_time_that_is_over_before_a_category_leaves_all_that_come_after_it() -> None:
    slow = always(lambda question: [*some(question), Paused(100.0)])
    book, _ = in_time(slow, order("alpha", "beta", "gamma", max_total_seconds=100.0))
    assert [question.place for question in slow.of_kind("tests")] == [("alpha", 1)]
    assert book.stats.category_rounds == {"alpha": 1, "beta": 0, "gamma": 0}
    assert book.stopped_by == "max_total_time"


def test_tests_of_the_last_round_are_still_run_in_the_time_that_is_kept_for_that() -> None:
    slow = always(lambda _: [about(1), about(2), Paused(1000.0)])
    book, late = in_time(slow, order("alpha", max_total_seconds=50.0), NumberedSubject(9), takes=0.1)
    assert late <= 50.0
    assert {*book.state.verdicts} == {"alpha_1_1", "alpha_1_2"}
    assert book.stats.quality is not None
    assert book.stats.quality.counting_tests == 2
    assert book.stopped_by == "max_total_time"
    assert len(slow.questions) == 1


def test_baseline_tests_take_a_quarter_of_the_time() -> None:
    quick = always(lambda _: [about(1)])
    subject = NumberedSubject(9, floor=range(9))
    book, _ = in_time(quick, order("alpha", max_total_seconds=100.0), subject, takes=5.0)
    floor = [test.test_id for test in book.suite if test.is_combinatorial]
    assert floor == [f"floor{number}" for number in range(1, 6)]
    assert book.of(TestRan)[0].test_id == "floor1"
    assert quick.questions


def test_tests_for_which_there_is_no_time_are_kept_and_told_as_not_run() -> None:
    slow = always(lambda _: [about(n) for n in range(5)])
    book, late = in_time(slow, order("alpha", max_total_seconds=10.0), NumberedSubject(9), takes=2.4)
    assert late == pytest.approx(10.0, abs=0.1)
    assert len(book.suite) == 5
    assert 0 < len(book.state.verdicts) < 5
    assert any("not run" in doubt for doubt in book.stats.uncertainties)
    assert book.stopped_by == "max_total_time"


def test_a_reflection_that_takes_too_long_is_the_end_and_not_waited_for() -> None:
    def answer(question: Question) -> Any:
        if question.kind == "tests":
            return [*some(question), Paused(70.0)]
        raise AssertionError

    book, late = in_time(Author(answer), order("alpha", max_total_seconds=60.0))
    assert late == pytest.approx(60.0, abs=0.1)
    assert len(book.suite) == 3


def test_time_that_was_worked_before_counts() -> None:
    async def scene(clock: Any) -> Book:
        author = always(lambda question: [*some(question), Paused(40.0)], reflection=WANTING)
        first = await ran(author, order("alpha", max_total_seconds=100.0), worker=Inline())
        cut = next(n for n, event in enumerate(first.events) if isinstance(event, TestAdded))
        again = Book(events=first.events[: cut + 3], account=first.accounts[-3])
        assert again.account.worked_seconds > 70
        begun = clock.now()
        await ran(author, order("alpha", max_total_seconds=100.0), book=again)
        assert clock.now() - begun <= 30.0
        return again

    assert in_virtual_time(scene).stopped_by == "max_total_time"


@pytest.mark.parametrize("cap", ["max_calls", "max_tokens", "max_cost"])
async def test_the_budget_of_the_caller_is_a_limit_like_the_others(cap: str) -> None:
    free = await ran(always(), order("alpha"))
    first = next(account.spent for account in free.accounts if account.spent.calls)
    tokens = first.usage.input_tokens + first.usage.output_tokens
    used_by_one = {"max_calls": 1, "max_tokens": tokens * 2, "max_cost": first.cost}
    author = always(reflection=WANTING)
    book = await ran(author, order("alpha", "beta", budget=Budget(**{cap: used_by_one[cap]})))
    assert len(author.questions) == 1
    assert len(book.suite) == 3
    assert book.stopped_by == "budget"


def test_the_time_of_the_callers_budget_is_a_limit_like_the_others() -> None:
    author = always(lambda question: [*some(question), Paused(20.0)], reflection=WANTING)
    book, late = in_time(author, order("alpha", budget=Budget(max_seconds=30.0)))
    assert late == pytest.approx(30.0, abs=0.1)
    assert book.stopped_by == "budget"


@pytest.mark.parametrize(
    ("error", "stopped_by"),
    [
        (time_limit_error(3.0), "max_total_time"),
        (
            ResourceExhaustedError(
                "used up",
                code="BUDGET_EXHAUSTED",
                details={"budget": "request", "cap": "max_tokens"},
            ),
            "max_total_tokens",
        ),
        (
            ResourceExhaustedError(
                "used up",
                code="BUDGET_EXHAUSTED",
                details={"budget": "request", "cap": "max_cost"},
            ),
            "budget",
        ),
    ],
)
async def test_a_budget_that_the_gateway_finds_used_up_ends_the_run(
    error: Exception,
    stopped_by: str,
) -> None:
    author = always(lambda question: [*some(question, 2), error])
    book = await ran(author, order("alpha", "beta"))
    assert len(author.questions) == 1
    assert len(book.suite) == 2
    assert book.stopped_by == stopped_by


async def test_categories_at_the_same_time_do_not_pass_a_limit_together() -> None:
    author = always(lambda question: some(question, 3), reflection=WANTING, assessment=POOR)
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    book = await ran(author, order(*names, parallel_categories=True, max_total_tokens=12_000))
    assert 1 < author.most_running < 5
    assert used(book) <= 12_000
    assert all(account.reserved_tokens <= 12_000 for account in book.accounts)
    assert book.stats.stopped_by is GenerationStop.MAX_TOTAL_TOKENS


CATALOG = ModelCatalog.load()


async def test_a_model_that_would_stop_reasoning_for_tools_writes_a_list() -> None:
    async def asked(provider: str, name: str) -> list[bool]:
        author = always()
        book = await ran(author, order("alpha"), model=CATALOG.find(provider, name))
        assert book.stats.total_rounds
        return [bool(question.request.tools) for question in author.of_kind("tests")]

    assert set(await asked("openai", "gpt-5.5")) == {False}
    assert set(await asked("openai-responses", "gpt-5.5")) == {True}


async def test_answers_have_room_for_thoughts_and_a_medium_effort() -> None:
    async def longest(name: str) -> int:
        author = always()
        await ran(author, order("alpha"), model=CATALOG.find("openai", name))
        assert {question.request.reasoning_effort for question in author.questions} == {
            ReasoningEffort.MEDIUM
        }
        return author.of_kind("tests")[0].request.max_output_tokens or 0

    assert await longest("gpt-5.2") - await longest("gpt-4.1") == 8_192
