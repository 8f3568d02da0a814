"""Policies in office English, written before the reader: right decisions, and no unsafe one."""

from __future__ import annotations

import pytest

from peripety.author.policy_author.rules import build_rules
from support.policy_texts import decide_texts, load_policy_texts, score_decisions


@pytest.mark.slow_after(1, reason="reads many policies")
@pytest.mark.parametrize(("half", "least"), [("development", 0.90), ("sealed", 0.84)])
def test_no_call_is_allowed_that_the_text_forbids(half: str, least: float) -> None:
    decided = [*decide_texts(load_policy_texts(half), build_rules)]
    score = score_decisions(decided)
    unsafe = [
        (policy.name, call.request, actual)
        for policy, call, actual in decided
        if actual == "allow" != call.expected
    ]
    assert not unsafe
    assert score["right"] >= least * score["calls"]


@pytest.mark.parametrize("half", ["development", "sealed"])
def test_a_sentence_that_stops_nothing_and_allows_nothing_is_named(half: str) -> None:
    for policy in load_policy_texts(half):
        found = build_rules(policy.text, policy.tools)
        named = {one.sentence for one in found.unfollowed}
        followed = {rule["principle"] for rule in found.rules if "principle" in rule}
        assert not named & followed
        assert all(one.part for one in found.unfollowed)
