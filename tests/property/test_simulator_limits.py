"""Limits against a list of everything that was let in: never too much in any time, never too little."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.llmsim.provider_rules.limits import RateLimits
from peripety.llmsim.script.types import RateLimit
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import ApiError, BilledUsage
from support.examples import example_count
from support.gateway.requests import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.provider_rules.limits import RateAdmission


EXAMPLES = example_count(150)

limits = st.integers(1, 400)
gaps = st.integers(0, 90_000)  # milliseconds
sizes = st.integers(0, 120)
steps = st.lists(st.tuples(gaps, sizes, sizes), min_size=1, max_size=40)


def room(limit: int, let_in: Sequence[tuple[Fraction, int]], now: Fraction) -> Fraction:
    """Return the free capacity: in any stretch of time, at most the limit and its refill are let in."""
    best = Fraction(limit)
    for begin, _ in let_in:
        used = sum(amount for at, amount in let_in if at >= begin)
        best = min(best, limit + limit * (now - begin) / 60 - used)
    return best


def answer(gate: RateLimits, usage: BilledUsage, now: float) -> RateAdmission | ApiError:
    try:
        return gate.admit("key", "model", usage, now)
    except ApiError as error:
        return error


@given(limit=limits, asked=steps)
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_is_let_in_is_what_the_definition_allows(limit: int, asked: list[tuple[int, int, int]]) -> None:
    gate = RateLimits([RateLimit(tokens_per_minute=limit)], StateTable())
    let_in: list[tuple[Fraction, int]] = []
    clock = Fraction(0)
    microsecond = Fraction(limit, 60_000_000)
    for gap, tokens, output in asked:
        clock += Fraction(gap, 1000)
        now = NOW + float(clock)
        wanted = tokens + output
        allowed = room(limit, let_in, clock)
        answered = answer(gate, BilledUsage(tokens, output=output), now)
        if isinstance(answered, ApiError):
            assert wanted > allowed
            wait = None if wanted > limit else float((wanted - allowed) * 60 / limit)
            told = answered.retry and answered.retry.seconds
            assert told == (wait and pytest.approx(wait, abs=1e-5))
            continue
        assert wanted <= allowed + microsecond
        let_in.append((clock, wanted))
        allowance = answered.remaining_limits(now)
        assert allowance is not None
        assert allowance.tokens is not None
        assert allowance.tokens.remaining == max(0, int(room(limit, let_in, clock)))


@given(limit=limits, asked=steps)
@settings(max_examples=EXAMPLES, deadline=None)
def test_who_comes_back_when_told_is_let_in(limit: int, asked: list[tuple[int, int, int]]) -> None:
    gate = RateLimits([RateLimit(requests_per_minute=limit, input_tokens_per_minute=limit)], StateTable())
    now = NOW
    for gap, tokens, _ in asked:
        now += gap / 1000
        usage = BilledUsage(min(tokens, limit))
        answered = answer(gate, usage, now)
        if isinstance(answered, ApiError):
            assert answered.retry is not None
            now += answered.retry.seconds
            assert not isinstance(answer(gate, usage, now), ApiError)
