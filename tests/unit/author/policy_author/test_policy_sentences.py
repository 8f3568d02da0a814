"""Single sentences of policies: expected decisions, written before the reader was changed for them."""

from __future__ import annotations

import pytest

from support.policy_sentences import load_cases, read_case

_LEAST_SENTENCES = 300
_DOMAINS = {
    "development": ("mail", "bank", "disk", "code", "lab"),
    "sealed": ("mail", "bank", "disk", "code", "lab"),
    "composed": ("store", "folders"),
    "fresh": ("calendar", "shop", "people", "cluster", "papers"),
}


def test_the_parts_are_large_and_share_no_sentence() -> None:
    parts = {part: load_cases(part) for part in _DOMAINS}
    assert sum(map(len, parts.values())) >= _LEAST_SENTENCES
    assert {part: {one.domain for one in cases} for part, cases in parts.items()} == {
        part: set(domains) for part, domains in _DOMAINS.items()
    }
    texts = [{one.text for one in cases} for cases in parts.values()]
    assert len(frozenset().union(*texts)) == sum(map(len, texts))


@pytest.mark.slow_after(2, reason="reads 496 sentences")
@pytest.mark.parametrize(
    ("part", "domain"), [(part, one) for part, domains in _DOMAINS.items() for one in domains]
)
def test_no_call_is_allowed_against_its_sentence(part: str, domain: str) -> None:
    read = [read_case(one) for one in load_cases(part) if one.domain == domain]
    assert read
    assert not [(one.case.text, one.unsafe) for one in read if one.unsafe]
