"""Matching prompts: many rules of every sort, on each core and through `peripety.engine.patterns`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from bench.measure import best, keep
from bench.patterns import mixed_prompts, mixed_rules
from peripety.engine.patterns.matcher import PatternMatcher
from support.engine.backends import BACKEND_NAMES, backend_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.patterns.syntax import MatchSubject


PROMPTS = 200


@pytest.mark.parametrize("length", [100, 500, 2000])
@pytest.mark.parametrize("amount", [10, 100, 1000, 10_000, 100_000])
def test_the_first_of_many_rules(amount: int, length: int) -> None:
    matchers = _matchers(amount)
    prompts = mixed_prompts(mixed_rules(amount), PROMPTS, length)
    answers = {name: [*map(matcher.first, prompts)] for name, matcher in matchers.items()}
    assert answers["native"] == answers["python"]
    figures = best({name: _matching(matcher, prompts) for name, matcher in matchers.items()})
    keep("matching", scenario=f"{amount} rules, {length} characters", **figures)


@cache
def _matchers(amount: int) -> dict[str, PatternMatcher]:
    rules = mixed_rules(amount)
    return {name: PatternMatcher(rules, backend=backend_named(name)) for name in BACKEND_NAMES}


def _matching(matcher: PatternMatcher, prompts: list[MatchSubject]) -> Callable[[int], int]:
    def work(times: int) -> int:
        for number in range(times):
            matcher.first(prompts[number % len(prompts)])
        return times

    return work
