"""Model failures lose no test, stop only the affected work, and are reported at the end."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.testgen.events import GenerationCompleted, GenerationFailed, GenerationProgressed, StepOutcome
from support.testgen.fake_run import (
    CONTENT,
    GOOD,
    POOR,
    WANTING,
    Author,
    Book,
    LostError,
    NumberedSubject,
    Question,
    about,
    always,
    order,
    ran,
    some,
    written,
)

BUSY = ResourceExhaustedError("too many requests", code="PROVIDER_RATE_LIMITED", retry_after=5.0)
GONE = UnavailableError("nobody answers", code="PROVIDER_UNREACHABLE")


def failing(category: str | None, error: Exception, *, after: int = 0) -> Author:
    """An author of whom questions about one category fail."""

    def answer(question: Question) -> Any:
        if question.kind != "tests":
            return CONTENT if question.category else GOOD
        return [*some(question)[:after], error] if question.category == category else some(question)

    return Author(answer)


@pytest.mark.parametrize("error", [BUSY, GONE])
async def test_a_category_that_cannot_be_asked_about_is_left_and_the_next_one_goes_on(
    error: PeripetyError,
) -> None:
    author = failing("alpha", error)
    book = await ran(author, order("alpha", "beta"))
    assert isinstance(book.last, GenerationCompleted)
    assert [test.category for test in book.suite] == ["beta"] * 3
    assert [question.place for question in author.of_kind("tests")] == [("alpha", 1), ("beta", 1)]
    assert book.stats.uncertainties == (f"no tests of alpha: {error.message}.",)
    assert book.stopped_by == "rounds_used"
    ends = [(event.category, event.end) for event in book.of(GenerationProgressed) if event.end]
    assert ends == [("alpha", StepOutcome.FAILED), ("beta", StepOutcome.DONE)]


async def test_tests_that_came_before_an_answer_broke_off_are_kept() -> None:
    book = await ran(failing("alpha", GONE, after=2), order("alpha", "beta"))
    assert [test.input for test in book.suite][:2] == ["alpha 1 one", "alpha 1 two"]
    assert isinstance(book.last, GenerationCompleted)


async def test_a_question_that_was_refused_gives_its_tokens_back_and_one_that_broke_off_does_not() -> None:
    refused = await ran(failing("alpha", BUSY), order("alpha", "beta"))
    assert refused.account.reserved_tokens == 0
    broken = await ran(failing("alpha", GONE, after=1), order("alpha", "beta"))
    assert broken.account.reserved_tokens > 0


async def test_a_run_of_which_nothing_could_be_asked_fails_with_the_reason() -> None:
    book = await ran(always(GONE, GONE, GONE), order("alpha", "beta"))
    assert isinstance(book.last, GenerationFailed)
    assert book.last.error is GONE
    assert book.stopped_by == "error"
    assert len(book.stats.uncertainties) == 3


async def test_a_run_that_fails_after_it_was_taken_up_says_why_too() -> None:
    whole = await ran(always(GONE, GONE, GONE), order("alpha"))
    book = Book(events=whole.events[:-1])
    await ran(always(), order("alpha"), book=book)
    assert isinstance(book.last, GenerationFailed)
    assert "nobody answers" in book.last.error.message


async def test_tests_that_need_no_model_are_kept_when_no_model_answers() -> None:
    book = await ran(always(GONE, GONE, GONE), order("alpha"), NumberedSubject(9, floor=[1, 2]))
    assert isinstance(book.last, GenerationFailed)
    assert book.stats.total_tests == 2


@pytest.mark.parametrize("error", [BUSY, GONE, FailedPreconditionError("no", code="ANSWER_INVALID")])
async def test_a_reflection_that_cannot_be_had_is_no_reason_to_stop(error: PeripetyError) -> None:
    author = always(reflection=error)
    book = await ran(author, order("alpha", target_tests_per_category=9))
    assert isinstance(book.last, GenerationCompleted)
    assert book.stats.category_rounds == {"alpha": 3}
    assert "reflection" not in author.of_kind("tests")[1].said
    assert f"no reflection on alpha: {error.message}." in book.stats.uncertainties


async def test_an_assessment_that_cannot_be_had_is_no_reason_to_fail() -> None:
    book = await ran(always(assessment=GONE), order("alpha"))
    assert isinstance(book.last, GenerationCompleted)
    assert book.stats.comprehensiveness_score is None
    assert book.stats.uncertainties == ("no assessment of the whole run: nobody answers.",)
    assert book.stopped_by == "rounds_used"


async def test_a_part_of_an_answer_that_is_no_test_spoils_no_other() -> None:
    def tests(question: Question) -> list[Any]:
        first, second, third = some(question)
        return ['{"input": ', first, '{"input": ""}', second, third]

    book = await ran(always(tests), order("alpha", enable_global_refinement=False))
    assert [test.input for test in book.suite] == ["alpha 1 one", "alpha 1 two", "alpha 1 three"]
    assert len(book.stats.uncertainties) == 1
    assert book.stats.uncertainties[0].startswith("2 response parts of alpha were not tests")


async def test_a_model_that_takes_no_tools_is_asked_for_a_list_with_the_same_effect() -> None:
    called = await ran(always(), order("alpha"))

    class Lister(Author):
        async def respond(self, request: Any) -> Any:
            if request.tools:
                raise InvalidArgumentError("no tools here")
            async for event in super().respond(request):
                yield event

    listed = await ran(Lister(always().answer), order("alpha"))
    assert listed.suite == called.suite


async def test_a_model_that_calls_no_tools_is_asked_once_more_for_a_list() -> None:
    author = always()
    author.takes_tools = False
    book = await ran(author, order("alpha"))
    assert len(book.suite) == 3
    first, second = author.of_kind("tests")
    assert first.request.tools
    assert not second.request.tools
    assert second.request.schema is not None


async def test_a_category_for_which_nothing_was_written_is_left_whatever_is_missing() -> None:
    author = always(
        lambda question: [] if question.place == ("alpha", 2) else some(question),
        reflection=WANTING,
    )
    book = await ran(author, order("alpha", "beta", enable_global_refinement=False, min_total_tests=30))
    rounds = [question.place for question in author.of_kind("tests")]
    assert [number for category, number in rounds if category == "alpha"] == [1, 2, 2]
    assert [number for category, number in rounds if category == "beta"] == [1, 2, 3]
    assert book.stopped_by == "rounds_used"


async def test_a_model_that_writes_nothing_is_asked_once_for_each_category_and_for_all_of_them() -> None:
    author = always(lambda _: [], reflection=WANTING, assessment=POOR)
    book = await ran(author, order("alpha", "beta", min_total_tests=15))
    assert isinstance(book.last, GenerationCompleted)
    # Once by the tool, and once for a list.
    assert [question.place for question in author.of_kind("tests")] == [
        *[("alpha", 1)] * 2,
        *[("beta", 1)] * 2,
        *[(None, 1)] * 2,
    ]
    assert not book.suite


async def test_a_category_of_which_all_was_unreadable_is_asked_about_again() -> None:
    author = always(lambda question: ['{"input": ""}'] if question.place == ("alpha", 1) else some(question))
    book = await ran(author, order("alpha", enable_global_refinement=False))
    assert [test.round for test in book.suite] == [2, 3]


async def test_duplicates_are_told_with_what_they_repeat_and_not_kept() -> None:
    author = always(lambda _: [written("Once"), written("once "), written("twice")])
    book = await ran(author, order("alpha", "beta"))
    assert [test.input for test in book.suite] == ["Once", "twice"]
    told = [(event.test.test_id, event.of, event.level.value) for event in book.state.dropped]
    assert told[0] == ("alpha_1_2", "alpha_1_1", "canonical")
    assert book.stats.duplicates == len(told) == len(book.made) - 2


async def test_a_test_that_detects_what_another_does_is_not_dropped() -> None:
    author = always(lambda _: [about(1), about(1, 1), about(2)])
    book = await ran(author, order("alpha", enable_global_refinement=False), NumberedSubject(3))
    assert book.state.dropped == []
    assert [test.test_id for test in book.suite] == ["alpha_1_1", "alpha_1_2", "alpha_1_3"]
    assert not book.state.verdicts["alpha_1_2"].counts


async def test_a_correction_supersedes_a_test_that_was_not_met() -> None:
    wrong, right = about(1, holds=False), about(1, replaces="alpha_1_1")
    answers = iter([[wrong, about(2)], [right], [about(2, 2, replaces="alpha_1_2")]])
    author = always(lambda _: next(answers, []), reflection=WANTING)
    book = await ran(author, order("alpha", enable_global_refinement=False), NumberedSubject(3))
    # A test that was met cannot be replaced.
    assert book.state.superseded == {"alpha_1_1"}
    assert "alpha_1_1" in book.state.tests
    assert "alpha_1_1" not in {test.test_id for test in book.state.current_tests}
    assert [test.replaces for test in book.state.tests.values()] == ["", "", "alpha_1_1", "alpha_1_2"]
    told = [question.said.get("not_met") for question in author.questions if question.kind == "tests"]
    assert told[0] is None
    assert [entry["id"] for entry in told[1] or ()] == ["alpha_1_1"]
    assert told[2] is None
    assert not any("not met" in doubt for doubt in book.stats.uncertainties)


@pytest.mark.parametrize("error", [LostError(), UnavailableError("the disk is gone", code="STORAGE_DOWN")])
async def test_a_journal_that_fails_ends_the_work_at_once_wherever_that_happens(error: Exception) -> None:
    whole = await ran(always(), order("alpha"))
    for transaction in range(whole.transactions):
        book = Book(fails_at=transaction, error=error)
        with pytest.raises(type(error)):
            await ran(always(), order("alpha"), book=book)
        assert not book.of(GenerationFailed)
        assert book.transactions == transaction
        book.fails_at = None
        await ran(always(), order("alpha"), book=book)
        assert book.suite == whole.suite


async def test_a_defect_of_ours_ends_the_run_and_tells_nothing_of_what_it_was_about() -> None:
    class Defective(NumberedSubject):
        def kills(self, *_: Any) -> Any:
            raise KeyError("a secret")

    book = await ran(always(lambda _: [about(1)]), order("alpha"), Defective(3))
    assert isinstance(book.last, GenerationFailed)
    assert isinstance(book.last.error, InternalError)
    assert "secret" not in book.last.error.message
    assert [test.test_id for test in book.suite] == ["alpha_1_1"]
