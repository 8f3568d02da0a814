"""Single sentences of policies: expected decisions, written before the reader was changed for them."""

from __future__ import annotations

import pytest

from support.policy_sentences import load_cases, read_case

_LEAST_SENTENCES = 300
_DOMAINS = ("mail", "bank", "disk", "code", "lab")
_HALVES = ("development", "sealed")


def test_the_halves_are_large_and_share_no_sentence() -> None:
    halves = [load_cases(half) for half in _HALVES]
    assert sum(map(len, halves)) >= _LEAST_SENTENCES
    assert all({one.domain for one in half} == set(_DOMAINS) for half in halves)
    development, sealed = ({one.text for one in half} for half in halves)
    assert not development & sealed


@pytest.mark.slow_after(2, reason="reads 321 sentences")
@pytest.mark.parametrize("domain", _DOMAINS)
@pytest.mark.parametrize("half", _HALVES)
def test_no_call_is_allowed_against_its_sentence(half: str, domain: str) -> None:
    read = [read_case(one) for one in load_cases(half) if one.domain == domain]
    assert read
    assert not [(one.case.text, one.unsafe) for one in read if one.unsafe]
