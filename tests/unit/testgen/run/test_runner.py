"""A run generates each category in rounds, reflects, refines the whole suite, and reports its end reason."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.events import (
    GenerationCompleted,
    GenerationProgressed,
    GenerationStarted,
    QualityMeasured,
    ReflectionAction,
    StepOutcome,
    TestAdded,
    TestRan,
)
from peripety.testgen.types import TaskContext, TestGenConfig, TestGenOrder, categories_of
from support.testgen.fake_run import (
    CONTENT,
    GOOD,
    POOR,
    WANTING,
    NumberedSubject,
    Question,
    about,
    always,
    order,
    ran,
    some,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def fresh() -> Callable[[Question], list[dict[str, Any]]]:
    """Return a function that writes the minimum number of requested tests, each about a new part."""
    parts = count()
    return lambda question: [about(next(parts), category="beta") for _ in range(question.said["at_least"])]


def places(questions: Sequence[Question]) -> list[tuple[str | None, int]]:
    return [question.place for question in questions]


async def test_a_run_begins_with_its_order_and_ends_with_its_sums() -> None:
    what = order("alpha", "beta")
    author = always()
    book = await ran(author, what)
    assert book.events[0] == GenerationStarted(what)
    assert isinstance(book.last, GenerationCompleted)
    stats = book.stats
    assert stats.total_tests == len(book.suite) == 6
    assert stats.total_rounds == 2
    assert stats.category_rounds == {"alpha": 1, "beta": 1}
    assert stats.global_rounds == 0
    assert stats.comprehensiveness_score == 9
    assert stats.spent.calls == len(author.questions) == 5
    assert stats.spent.usage.input_tokens > 0
    assert stats.uncertainties == ()
    assert book.stopped_by == "satisfied"


async def test_the_categories_of_a_benchmark_are_worked_on_in_their_order() -> None:
    what = TestGenOrder(
        "make it so",
        context=TaskContext.BENCHMARK,
        categories=categories_of(TaskContext.BENCHMARK),
        config=TestGenConfig(max_total_tokens=10**7),
    )
    author = always()
    await ran(author, what)
    rounds = places(author.of_kind("tests"))
    names = ["anti_cheat", "existence", "correctness", "boundary", "integration"]
    assert rounds == [(name, 1) for name in names]


async def test_a_first_round_asks_for_three_to_five_tests_and_later_ones_for_one_to_three() -> None:
    author = always(lambda question: some(question, 1), reflection=WANTING)
    await ran(author, order("alpha", enable_global_refinement=False))
    asked = [(question.said["at_least"], question.said["at_most"]) for question in author.of_kind("tests")]
    assert asked == [(3, 5), (1, 3), (1, 3)]


async def test_a_category_goes_on_past_its_minimum_as_long_as_something_is_missing() -> None:
    author = always(lambda question: some(question, 2), reflection=WANTING)
    what = order("alpha", min_tests_per_category=2, target_tests_per_category=9)
    book = await ran(author, what)
    assert book.stats.category_rounds == {"alpha": 3}


async def test_a_category_ends_when_nothing_is_missing() -> None:
    book = await ran(always(), order("alpha", min_tests_per_category=2, target_tests_per_category=9))
    assert book.stats.category_rounds == {"alpha": 1}
    assert [event.reflection.action for event in book.reflections] == [ReflectionAction.COMPLETE] * 2


async def test_a_category_below_its_minimum_goes_on_even_when_nothing_is_said_to_be_missing() -> None:
    author = always(lambda question: some(question, 1))
    book = await ran(author, order("alpha", min_tests_per_category=2))
    assert book.stats.category_rounds == {"alpha": 2}
    assert [event.reflection.action for event in book.reflections[:2]] == [
        ReflectionAction.REFINING,
        ReflectionAction.COMPLETE,
    ]


async def test_a_category_ends_when_its_target_is_met_without_another_question() -> None:
    author = always(lambda question: some(question, 5), reflection=WANTING)
    book = await ran(author, order("alpha", target_tests_per_category=5))
    assert book.stats.category_rounds == {"alpha": 1}
    assert not author.of_kind("reflection")


async def test_no_category_has_more_rounds_than_allowed_and_its_last_one_is_not_looked_back_at() -> None:
    author = always(lambda question: some(question, 1), reflection=WANTING)
    what = order("alpha", max_rounds_per_category=2, target_tests_per_category=9)
    book = await ran(author, what)
    assert book.stats.category_rounds == {"alpha": 2}
    assert [question.said["round"] for question in author.of_kind("reflection")] == [1]


async def test_what_a_reflection_says_goes_into_the_next_question_as_it_is() -> None:
    said = {"text": 'ünder\nthe "line"', "nothing_missing": False, "recommendations": ["try a", "try\tb"]}
    author = always(reflection=said)
    book = await ran(author, order("alpha", target_tests_per_category=4))
    first, second = (question.said for question in author.of_kind("tests")[:2])
    assert "reflection" not in first
    assert second["reflection"] == {"text": said["text"], "recommendations": said["recommendations"]}
    assert book.reflections[0].reflection.text == said["text"]
    assert book.reflections[0].reflection.recommendations == ("try a", "try\tb")
    assert book.reflections[0].reflection.action is ReflectionAction.REFINING


async def test_every_question_lists_the_tests_there_are() -> None:
    author = always()
    await ran(author, order("alpha", "beta"))
    first, reflection, second, *_, last = author.questions
    assert first.said["existing_tests"] == []
    listed = [
        f"[alpha_1_{n}] alpha: alpha 1 {word} -> as it should"
        for n, word in ((1, "one"), (2, "two"), (3, "three"))
    ]
    assert reflection.said["existing_tests"] == second.said["existing_tests"] == listed
    assert last.kind == "assessment"
    assert last.said["existing_count"] == 6
    assert last.said["by_category"] == {"alpha": 3, "beta": 3}


async def test_a_low_score_leads_to_tests_from_its_recommendations_and_to_another_assessment() -> None:
    assessments = iter([POOR, GOOD])
    author = always(assessment=lambda _: next(assessments))
    book = await ran(author, order("alpha", "beta"))
    assessed, refining, again = author.questions[-3:]
    assert [assessed.kind, refining.kind, again.kind] == ["assessment", "tests", "assessment"]
    assert (refining.said["at_least"], refining.said["at_most"]) == (2, 5)
    assert "category" not in refining.said
    assert refining.said["reflection"]["recommendations"] == POOR["recommendations"]
    assert "nothing at all" in refining.said["reflection"]["text"]
    assert refining.said["existing_count"] == 6
    assert book.stats.global_rounds == 1
    assert book.stats.comprehensiveness_score == 9
    assert [event.reflection.action for event in book.reflections[-2:]] == [
        ReflectionAction.ASSESSING,
        ReflectionAction.COMPLETE,
    ]
    assert book.stopped_by == "satisfied"


@pytest.mark.parametrize(("score", "rounds"), [(7, 1), (8, 0)])
async def test_a_score_of_eight_needs_no_refinement(score: int, rounds: int) -> None:
    assessments = iter([GOOD | {"score": score}, GOOD])
    book = await ran(always(assessment=lambda _: next(assessments)), order("alpha"))
    assert book.stats.global_rounds == rounds


async def test_the_refinement_ends_after_as_many_rounds_as_are_allowed() -> None:
    author = always(assessment=POOR)
    book = await ran(author, order("alpha", max_global_refinement_rounds=2))
    assert book.stats.global_rounds == 2
    assert len(author.of_kind("assessment")) == 3
    assert book.stopped_by == "rounds_used"


async def test_tests_of_the_refinement_name_their_categories_and_have_ids_of_their_own() -> None:
    def tests(question: Question) -> list[dict[str, Any]]:
        if question.category:
            return some(question)
        return [
            written("here", category="beta"),
            written("elsewhere", category="no_such_category"),
            written("nowhere"),
        ]

    book = await ran(always(tests, assessment=POOR), order("alpha", "beta", max_global_refinement_rounds=1))
    refined = [test for test in book.suite if test.is_global]
    assert [test.category for test in refined] == ["beta", "alpha", "alpha"]
    assert [test.round for test in refined] == [1, 1, 1]
    assert len({test.test_id for test in book.suite}) == len(book.suite)


async def test_without_refinement_nothing_is_assessed() -> None:
    author = always()
    book = await ran(author, order("alpha", enable_global_refinement=False))
    assert not author.of_kind("assessment")
    assert book.stats.comprehensiveness_score is None
    assert book.stopped_by == "satisfied"


@pytest.mark.parametrize("refined", [True, False])
async def test_a_run_with_too_few_tests_goes_on_while_rounds_remain(refined: bool) -> None:
    what = order("alpha", "beta", min_total_tests=12, enable_global_refinement=refined)
    book = await ran(always(), what)
    assert len(book.suite) >= 12 if refined else len(book.suite) == 10
    assert book.stopped_by == ("satisfied" if refined else "rounds_used")


async def test_a_run_ends_when_there_are_enough_tests_in_all() -> None:
    author = always(lambda question: some(question, 5), assessment=POOR)
    book = await ran(author, order("alpha", "beta", "gamma", target_total_tests=8))
    assert len(book.suite) == 10  # tests beyond the target are retained
    assert author.questions[-1].place == ("beta", 1)
    assert book.stopped_by == "target_total_tests"


async def test_no_more_tests_are_asked_for_than_there_is_room_for() -> None:
    author = always(lambda question: some(question, question.said["at_most"]))
    book = await ran(author, order("alpha", "beta", target_total_tests=7))
    assert [question.said["at_most"] for question in author.of_kind("tests")] == [5, 2]
    assert len(book.suite) == 7


async def test_every_generating_round_counts_towards_the_most_rounds() -> None:
    author = always(lambda question: some(question, 1), reflection=WANTING, assessment=POOR)
    book = await ran(author, order("alpha", "beta", max_total_rounds=4))
    assert places(author.of_kind("tests")) == [("alpha", 1), ("alpha", 2), ("alpha", 3), ("beta", 1)]
    assert author.questions[-1].kind == "tests"
    assert book.stopped_by == "max_total_rounds"


async def test_five_categories_and_the_refinement_have_all_their_rounds_by_default() -> None:
    author = always(lambda question: some(question, 1), reflection=WANTING, assessment=POOR)
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    what = order(*names, min_total_tests=15)
    book = await ran(author, what)
    assert book.stats.total_rounds == what.config.max_total_rounds == 17
    assert book.stats.category_rounds == dict.fromkeys(names, 3)
    assert book.stats.global_rounds == 2
    assert author.questions[-1].kind == "assessment"


async def test_categories_at_the_same_time_have_the_same_rounds_as_one_after_the_other() -> None:
    author = always(lambda question: some(question, 2), reflection=WANTING)
    what = order("alpha", "beta", "gamma", parallel_categories=True)
    book = await ran(author, what)
    assert author.most_running == 3
    in_order = await ran(
        always(lambda question: some(question, 2), reflection=WANTING),
        order("alpha", "beta", "gamma"),
    )
    assert book.stats.category_rounds == in_order.stats.category_rounds
    assert sorted(test.input for test in book.suite) == sorted(test.input for test in in_order.suite)


async def test_all_questions_have_the_same_system_text_with_the_task_in_it() -> None:
    author = always(fresh(), reflection=WANTING, assessment=POOR)
    await ran(author, order("alpha", "beta"), NumberedSubject(40))
    texts = {question.request.system for question in author.questions}
    assert {question.kind for question in author.questions} == {"tests", "reflection", "assessment"}
    assert len(texts) == 1
    assert '"task":"make it so"' in (texts.pop() or "")
    assert all(len(question.request.messages) == 1 for question in author.questions)


async def test_progress_names_phase_category_and_round() -> None:
    book = await ran(always(assessment=POOR), order("alpha", max_global_refinement_rounds=1))
    begun = [
        (event.phase.value, event.category, event.round)
        for event in book.of(GenerationProgressed)
        if event.round and event.end is None
    ]
    assert begun == [("category_generation", "alpha", 1), ("global_refinement", None, 1)]
    assert all(event.status for event in book.of(GenerationProgressed))
    assert book.state.phase.value == "complete"


async def test_tests_that_need_no_model_come_first_are_run_and_count_towards_no_number() -> None:
    author = always(fresh())
    subject = NumberedSubject(40, floor=[38, 39, 38])
    book = await ran(author, order("alpha", "beta", target_total_tests=6), subject)
    first = author.questions[0]
    assert [event.test.test_id for event in book.of(TestAdded)[:2]] == ["floor1", "floor2"]
    assert [event.test_id for event in book.of(TestRan)[:2]] == ["floor1", "floor2"]
    assert first.said["combinatorial_count"] == 2
    assert first.said["existing_tests"] == []
    assert all(entry["path"] not in {"/38", "/39"} for entry in first.said["survivors"])
    assert book.stopped_by == "target_total_tests"
    assert book.stats.total_tests == 8


@pytest.mark.parametrize("wanted", [True, False])
async def test_tests_that_need_no_model_are_made_only_where_they_are_wanted(wanted: bool) -> None:
    book = await ran(
        always(fresh()),
        order("alpha", combinatorial_floor=wanted),
        NumberedSubject(9, floor=[1]),
    )
    assert any(test.is_combinatorial for test in book.suite) is wanted


async def test_after_each_round_its_tests_are_run_and_the_next_question_says_what_they_leave_out() -> None:
    def tests(question: Question) -> list[dict[str, Any]]:
        if question.said["round"] == 1:
            return [about(0), about(1, holds=False), written("words alone")]
        return [about(2)]

    author = always(tests, reflection=WANTING)
    book = await ran(author, order("alpha"), NumberedSubject(4))
    second = author.of_kind("tests")[1].said
    assert [entry["mutant"] for entry in second["survivors"]] == ["m1", "m2", "m3"]
    assert second["survivors"][0] == {
        "mutant": "m1",
        "operator": "spoil",
        "path": "/1",
        "before": 1,
        "after": 2,
    }
    assert [entry["target"] for entry in second["uncovered"]] == ["part:/1", "part:/2", "part:/3"]
    assert [entry["status"] for entry in second["not_met"]] == ["failed", "not_executable"]
    assert second["not_met"][0]["observed"] == "parts [1]"
    assert second["not_met"][0]["body"] == {"parts": [1], "holds": False}
    assert book.of(QualityMeasured)


async def test_contradictions_are_in_the_next_question_and_in_both_verdicts() -> None:
    answers = iter([[about(1), about(1, holds=False), about(2)], [about(3)], [about(4)]])
    author = always(lambda _: next(answers), reflection=WANTING)
    what = order("alpha", enable_global_refinement=False)
    book = await ran(author, what, NumberedSubject(9))
    assert author.of_kind("tests")[1].said["contradictions"] == [["alpha_1_2", "alpha_1_1"]]
    for test_id in ("alpha_1_1", "alpha_1_2"):
        assert "CONTRADICTION" in [finding.code for finding in book.state.verdicts[test_id].findings]


async def test_tests_that_do_not_hold_do_not_fill_a_category() -> None:
    author = always(lambda _: [about(n, holds=False) for n in range(5)], reflection=WANTING)
    what = order(
        "alpha",
        target_tests_per_category=5,
        max_rounds_per_category=2,
        max_global_refinement_rounds=0,
    )
    book = await ran(author, what, NumberedSubject(9))
    assert book.stats.category_rounds == {"alpha": 2}
    assert any("not met" in doubt for doubt in book.stats.uncertainties)


async def test_what_was_measured_has_the_last_word_and_not_the_score() -> None:
    book = await ran(always(fresh()), order("alpha", "beta"), NumberedSubject(200))
    assert book.stats.comprehensiveness_score == 1  # of the 9 in the answer of the model
    assert book.stats.global_rounds == 2
    assert book.stopped_by == "rounds_used"


async def test_a_low_score_does_not_go_on_where_nothing_measurable_is_left() -> None:
    author = always(fresh(), assessment=POOR)
    book = await ran(author, order("alpha"), NumberedSubject(3))
    assert book.stats.comprehensiveness_score == 4
    assert book.stats.global_rounds == 0
    assert book.stopped_by == "satisfied"


async def test_a_run_whose_rounds_bring_nothing_new_ends_before_they_are_used_up() -> None:
    def tests(question: Question) -> list[dict[str, Any]]:
        return [about(0, 1, text=question.said["round"]), about(1, 2, text=len(author.questions))]

    author = always(tests, reflection=WANTING, assessment=POOR)
    book = await ran(author, order("alpha", "beta"), NumberedSubject(50))
    assert book.stopped_by == "expected_gain"
    assert book.stats.total_rounds < 8
    assert any("not detected" in doubt for doubt in book.stats.uncertainties)


async def test_a_run_with_too_few_tests_does_not_end_for_want_of_gain() -> None:
    def tests(_: Question) -> list[dict[str, Any]]:
        return [about(1), about(0)]

    author = always(tests, reflection=CONTENT)
    what = order("alpha", "beta", min_total_tests=20)
    book = await ran(author, what, NumberedSubject(50))
    assert book.stats.category_rounds == {"alpha": 3, "beta": 3}
    assert book.stats.global_rounds == 2
    assert book.stopped_by == "rounds_used"


async def test_a_round_that_was_left_says_that_it_is_over() -> None:
    book = await ran(always(), order("alpha"))
    assert [event.end for event in book.of(GenerationProgressed) if event.round] == [None, StepOutcome.DONE]
