"""A run for which nobody says otherwise has the limits that the guide tells."""

from __future__ import annotations

import re

import pytest

from peripety.testgen.types import TestGenConfig
from support.repo.repository import ROOT

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
        f" {CONFIG.min_total_tests} tests at least"
    )
    assert told == "2 to 5 tests and 3 rounds for each category, 2 rounds of refinement, 15 tests at least"
    assert told in GUIDE
    assert f"when the assessment is below {CONFIG.min_comprehensiveness_score} of 10" in GUIDE
