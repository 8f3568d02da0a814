"""A run killed at any moment ends with the same suite, without lost or repeated events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.events import (
    DuplicateDropped,
    GenerationCompleted,
    GenerationStarted,
    TestAdded,
    TestRan,
)
from support.testgen.fake_run import (
    CONTENT,
    POOR,
    WANTING,
    Author,
    Book,
    DeadError,
    NumberedSubject,
    Question,
    about,
    order,
    ran,
    some,
    written,
)

if TYPE_CHECKING:
    from peripety.testgen.events import GenerationEvent
    from peripety.testgen.types import TestCase, TestGenOrder


BUSY = order("alpha", "beta", target_tests_per_category=7, max_global_refinement_rounds=1)
AT_ONCE = order("alpha", "beta", target_tests_per_category=7, parallel_categories=True)


def answers(question: Question) -> Any:
    """Return an answer that depends only on the prompt: tests with repetitions, over several rounds."""
    if question.kind == "assessment":
        return POOR
    if question.kind == "reflection":
        return WANTING if question.said["round"] == 1 else CONTENT
    first, *others = some(question)
    return [first, '{"input": ', first, written("the same everywhere"), *others]


def measurable(question: Question) -> Any:
    """The same for a subject: tests that hold, that do not, that repeat others and that cannot be run."""
    if question.kind != "tests":
        return answers(question)
    part = len(question.said["existing_tests"])
    wrong = about(part, holds=False, category="beta")
    return [
        about(part, 30),
        about(part, 30, text="in other words"),
        wrong,
        written("no body", body={}),
        about(1),
    ]


def suite(book: Book) -> list[TestCase]:
    """Return the final suite, in an order that does not depend on timing."""
    return sorted(book.suite, key=lambda test: test.test_id)


def prefix(events: list[GenerationEvent], count: int, account: Any) -> Book:
    return Book(events=events[:count], account=account)


@pytest.mark.slow_after(1, reason="resumes after each event")
@pytest.mark.parametrize(
    ("answer", "what", "parts"),
    [
        (answers, BUSY, 0),
        (measurable, BUSY, 40),
        (measurable, replace(BUSY, config=replace(BUSY.config, combinatorial_floor=False)), 40),
    ],
    ids=["text", "on a subject", "without a floor"],
)
async def test_killed_after_any_event_it_ends_with_the_same_suite(
    answer: Any,
    what: TestGenOrder,
    parts: int,
) -> None:
    def subject() -> NumberedSubject | None:
        return NumberedSubject(parts, floor=[35, 36, 35]) if parts else None

    whole = await ran(Author(answer), what, subject())
    assert isinstance(whole.last, GenerationCompleted)
    assert len(whole.of(DuplicateDropped)) > 3
    for count in range(len(whole.events)):
        book = prefix(whole.events, count, whole.accounts[0])
        await ran(Author(answer), what, subject(), book=book)
        assert book.events[:count] == whole.events[:count]
        assert suite(book) == suite(whole)
        assert book.of(GenerationStarted) == [GenerationStarted(what)]
        assert [(event.test.test_id, event.of) for event in book.of(DuplicateDropped)] == [
            (event.test.test_id, event.of) for event in whole.of(DuplicateDropped)
        ]
        assert book.state.verdicts == whole.state.verdicts


@pytest.mark.slow_after(1, reason="repeats a run for each of its writes")
@pytest.mark.parametrize("with_subject", [False, True])
@pytest.mark.parametrize("what", [BUSY, AT_ONCE], ids=["in order", "at once"])
async def test_a_process_that_dies_at_any_write_is_followed_by_one_that_ends_with_the_same_suite(
    what: TestGenOrder,
    with_subject: bool,
) -> None:
    answer = measurable if with_subject else answers

    def subject() -> NumberedSubject | None:
        return NumberedSubject(40, floor=[35]) if with_subject else None

    whole = await ran(Author(answer), what, subject())
    for transactions in range(whole.transactions):
        book = Book(dies_after=transactions)
        with pytest.raises(DeadError):
            await ran(Author(answer), what, subject(), book=book)
        told = [*book.events]
        book.dies_after = None
        await ran(Author(answer), what, subject(), book=book)
        assert book.events[: len(told)] == told
        assert suite(book) == suite(whole)


async def test_killed_again_and_again_it_still_comes_to_its_end() -> None:
    whole = await ran(Author(answers), BUSY)
    book = Book()
    for _ in range(whole.transactions * 3):
        book.dies_after = book.transactions + 2
        try:
            await ran(Author(answers), BUSY, book=book)
        except DeadError:
            continue
        break
    assert isinstance(book.last, GenerationCompleted)
    assert suite(book) == suite(whole)


async def test_what_a_model_writes_otherwise_the_second_time_is_kept_beside_what_was_recorded() -> None:
    whole = await ran(Author(answers), BUSY)
    made = next(number for number, event in enumerate(whole.events) if isinstance(event, TestAdded))
    book = prefix(whole.events, made + 2, whole.accounts[0])
    recorded = [event.test for event in book.of(TestAdded)]
    others = Author(lambda question: some(question, 2) if question.kind == "tests" else CONTENT)
    await ran(others, order("alpha"), book=book)
    assert {test.test_id for test in recorded} <= {test.test_id for test in book.suite}
    assert len({test.test_id for test in book.made}) == len(book.made)


async def test_a_test_that_comes_again_in_a_round_that_is_done_anew_is_not_told_as_a_duplicate() -> None:
    what = order("alpha", enable_global_refinement=False, target_tests_per_category=3)
    whole = await ran(Author(some), what)
    for count in range(2, len(whole.events)):
        book = prefix(whole.events, count, whole.accounts[0])
        slightly = Author(
            lambda question: [
                {**test, "confidence": 0.7, "reasoning": "put otherwise"} for test in some(question)
            ],
        )
        await ran(slightly, what, book=book)
        assert not book.of(DuplicateDropped)
        assert len(book.suite) == 3


async def test_what_was_run_is_not_run_again() -> None:
    whole = await ran(Author(measurable), BUSY, NumberedSubject(40, floor=[35]))
    last = max(number for number, event in enumerate(whole.events) if isinstance(event, TestRan))
    subject = NumberedSubject(40, floor=[35])
    await ran(Author(measurable), BUSY, subject, book=prefix(whole.events, last + 1, whole.accounts[0]))
    assert not subject.ran


async def test_a_run_that_has_ended_is_left_as_it_is() -> None:
    book = await ran(Author(answers), BUSY)
    events = [*book.events]
    author = Author(answers)
    await ran(author, BUSY, book=book)
    assert book.events == events
    assert not author.questions


async def test_what_a_dead_process_had_reserved_counts_as_used() -> None:
    what = order("alpha", max_total_tokens=50_000)
    book = Book(dies_after=3)  # the first test is there, and the question is not settled
    with pytest.raises(DeadError):
        await ran(Author(answers), what, book=book)
    reserved = book.account.reserved_tokens
    assert reserved > 0
    book.dies_after = None
    await ran(Author(answers), what, book=book)
    assert book.account.reserved_tokens == reserved
    used = book.account.spent.usage.input_tokens + book.account.spent.usage.output_tokens
    assert used + reserved <= 50_000
