"""Single sentences of policies: expected decisions, written before the reader was changed for them."""

from __future__ import annotations

from support.policy_sentences import load_cases

_LEAST_SENTENCES = 300
_DOMAINS = 5


def test_the_halves_are_large_and_share_no_sentence() -> None:
    halves = [load_cases(half) for half in ("development", "sealed")]
    assert sum(map(len, halves)) >= _LEAST_SENTENCES
    assert all(len({one.domain for one in half}) == _DOMAINS for half in halves)
    development, sealed = ({one.text for one in half} for half in halves)
    assert not development & sealed
