"""Categories: derived from the context, or given by the caller.

Default limits of a run: the values in the guide.
"""

from __future__ import annotations

import re

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.types import Category, TaskContext, TestGenConfig, categories_of
from support.repo.repository import ROOT


@pytest.mark.parametrize(
    ("context", "names"),
    [
        (TaskContext.BENCHMARK, "anti_cheat existence correctness boundary integration"),
        (TaskContext.PROMPT, "existence correctness boundary"),
        (TaskContext.SCENARIO, "actions rejections boundary events endings"),
        (TaskContext.POLICY, "allowed denied escalated boundary evasion"),
    ],
)
def test_each_context_has_its_categories_in_order(context: TaskContext, names: str) -> None:
    categories = categories_of(context)
    assert " ".join(category.name for category in categories) == names
    assert all(category.description for category in categories)


def test_only_a_benchmark_looks_for_cheats() -> None:
    others = [
        context for context in TaskContext if context not in {TaskContext.BENCHMARK, TaskContext.CUSTOM}
    ]
    assert all(category.name != "anti_cheat" for context in others for category in categories_of(context))


def test_the_caller_may_have_its_own() -> None:
    own = [Category("first"), Category("second_one", "what belongs to it")]
    assert categories_of(TaskContext.CUSTOM, own) == tuple(own)


@pytest.mark.parametrize(
    ("context", "own", "place"),
    [
        (TaskContext.CUSTOM, [], "categories"),
        (TaskContext.CUSTOM, [Category(f"a{n}") for n in range(21)], "categories"),
        (TaskContext.CUSTOM, [Category("first"), Category("First")], "categories[1].name"),
        (TaskContext.CUSTOM, [Category("first"), Category("first")], "categories[1].name"),
        (TaskContext.CUSTOM, [Category("")], "categories[0].name"),
        (TaskContext.CUSTOM, [Category("a" * 65)], "categories[0].name"),
        (TaskContext.PROMPT, [Category("first")], "categories"),
    ],
)
def test_categories_that_cannot_be_used_are_refused_by_their_place(
    context: TaskContext,
    own: list[Category],
    place: str,
) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(place)) as caught:
        categories_of(context, own)
    assert [violation.field for violation in caught.value.violations] == [place]


GUIDE = " ".join((ROOT / "docs" / "how-to" / "generate-tests.md").read_text(encoding="utf-8").split())
CONFIG = TestGenConfig()


@pytest.mark.parametrize(
    ("option", "limit", "wanted"),
    [
        ("--max-tokens", CONFIG.max_total_tokens, 50_000),
        ("--max-time", CONFIG.max_total_seconds, 180),
        ("--max-rounds", CONFIG.max_total_rounds, 17),
        ("--target", CONFIG.target_total_tests, 30),
    ],
)
def test_the_limits_are_those_of_the_guide(option: str, limit: float, wanted: int) -> None:
    assert limit == wanted
    assert re.search(rf"\| `{option}` \| [^|]* \| {wanted:,} \|", GUIDE)


def test_so_are_those_of_its_categories_and_of_its_refinement() -> None:
    told = (
        f"{CONFIG.min_tests_per_category} to {CONFIG.target_tests_per_category} tests and"
        f" {CONFIG.max_rounds_per_category} rounds for each category,"
        f" {CONFIG.max_global_refinement_rounds} rounds of refinement,"
        f" at least {CONFIG.min_total_tests} written tests"
    )
    assert told in GUIDE
    wanted = "2 to 5 tests and 3 rounds for each category, 2 rounds of refinement, at least 15 written tests"
    assert told == wanted
    assert f"when the assessment is below {CONFIG.min_comprehensiveness_score} of 10" in GUIDE
