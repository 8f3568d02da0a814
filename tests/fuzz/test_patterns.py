"""A short run of what `make fuzz-patterns` does, and whether it would find what it looks for."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from fuzz import patterns
from fuzz.patterns import compare_rules
from peripety.engine.patterns.matcher import PatternMatcher
from support.engine.pattern_cases import random_rules, random_subject

if TYPE_CHECKING:
    from collections.abc import Container

    from peripety.engine.patterns.syntax import MatchSubject


@pytest.mark.slow(reason="asks about many patterns")
def test_every_index_answers_as_the_naive_scan() -> None:
    assert [told for number in range(100) if (told := compare_rules(7, number)) is not None] == []


def test_random_cases_match_early_late_and_not_at_all() -> None:
    found = []
    for seed in range(40):
        random = Random(seed)
        rules = random_rules(random)
        found += [rules.naive.first(random_subject(random, rules), ()) for _ in range(10)]
    assert 20 < found.count(None) < 200
    assert len({*found}) > 8


def test_an_index_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(PatternMatcher):
        def first(self, subject: MatchSubject, skip: Container[int] = ()) -> int | None:
            return super().first(subject) if skip else None

    monkeypatch.setattr(patterns, "PatternMatcher", Wrong)
    assert any(compare_rules(7, number) for number in range(20))
