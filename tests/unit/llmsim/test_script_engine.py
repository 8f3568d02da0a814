"""Selection of the rule or turn that answers, and the resulting position of the conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern
from peripety.llmsim.script.types import Fault, Script, ScriptResponse, ScriptRule, ScriptTurn
from peripety.llmsim.script_engine import RuleMatch, ScriptEngine, ScriptPosition

ANY = Pattern()


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


def said(text: str) -> ScriptResponse:
    return ScriptResponse(text=text)


ALPHA = ScriptRule(
    contains("alpha"),
    said("entered"),
    turns=(ScriptTurn(ANY, said("first")), ScriptTurn(contains("go"), said("second"))),
)
BETA = ScriptRule(contains("beta"), said("other"))
FALLBACK = ScriptRule(ANY, said("fallback"))
SCRIPT = ScriptEngine(Script((ALPHA, BETA, FALLBACK)))


def played(script: ScriptEngine, *prompts: str) -> list[RuleMatch | None]:
    """Return the match for each of some consecutive prompts."""
    position: ScriptPosition | None = None
    counts: dict[int, int] = {}
    matches = []
    for prompt in prompts:
        advance = script.match_prompt(MatchSubject(prompt), position, counts)
        position = advance.position
        if advance.limited_rule is not None:
            counts[advance.limited_rule] = counts.get(advance.limited_rule, 0) + 1
        matches.append(advance.match)
    return matches


def test_the_first_rule_that_matches_answers() -> None:
    assert played(SCRIPT, "beta and alpha") == [RuleMatch(0)]
    assert played(SCRIPT, "beta") == [RuleMatch(1)]
    assert played(SCRIPT, "neither") == [RuleMatch(2)]


def test_nothing_answers_where_no_rule_matches() -> None:
    assert played(ScriptEngine(Script((BETA,))), "alpha") == [None]


def test_a_sequence_advances_turn_by_turn_and_ends_after_its_last() -> None:
    assert played(SCRIPT, "alpha", "whatever", "go", "go") == [
        RuleMatch(0),
        RuleMatch(0, 0),
        RuleMatch(0, 1),
        RuleMatch(2),
    ]


def test_what_a_turn_does_not_expect_ends_the_sequence_and_is_matched_as_usual() -> None:
    assert played(SCRIPT, "alpha", "whatever", "beta", "go") == [
        RuleMatch(0),
        RuleMatch(0, 0),
        RuleMatch(1),
        RuleMatch(2),
    ]


def test_what_ends_a_sequence_may_enter_it_again() -> None:
    assert played(SCRIPT, "alpha", "whatever", "alpha", "whatever", "go") == [
        RuleMatch(0),
        RuleMatch(0, 0),
        RuleMatch(0),
        RuleMatch(0, 0),
        RuleMatch(0, 1),
    ]


def test_an_expected_prompt_stays_in_the_sequence_though_an_earlier_rule_matches_it() -> None:
    script = ScriptEngine(Script((BETA, ALPHA)))
    assert played(script, "alpha", "beta") == [RuleMatch(1), RuleMatch(1, 0)]


def test_a_rule_is_entered_as_often_as_it_may_and_its_turns_are_not_counted() -> None:
    script = ScriptEngine(Script((replace(ALPHA, max_matches=1), BETA)))
    assert played(script, "alpha", "x", "go", "alpha", "beta") == [
        RuleMatch(0),
        RuleMatch(0, 0),
        RuleMatch(0, 1),
        None,
        RuleMatch(1),
    ]


def test_a_rule_that_may_never_be_entered_is_not() -> None:
    script = ScriptEngine(Script((replace(FALLBACK, max_matches=0), BETA)))
    assert played(script, "beta", "alpha") == [RuleMatch(1), None]


def test_a_match_leads_to_what_the_rule_or_its_turn_says() -> None:
    failure = Fault("auth_error", {"message": "no"})
    script = ScriptEngine(
        Script((ScriptRule(ANY, said("entered"), turns=(ScriptTurn(ANY, failure=failure),)),)),
    )
    assert script.rule_or_turn(RuleMatch(0)).response == said("entered")
    assert script.rule_or_turn(RuleMatch(0)).failure is None
    assert script.rule_or_turn(RuleMatch(0, 0)).failure == failure


@pytest.mark.parametrize(
    ("match", "label"),
    [(RuleMatch(3), "response[3]"), (RuleMatch(0, 1), "response[0].turn[1]")],
)
def test_a_match_is_labelled_by_its_place_in_the_file(match: RuleMatch, label: str) -> None:
    assert match.label == label


def test_matches_compare_by_place() -> None:
    assert RuleMatch(1) == RuleMatch(1)
    assert RuleMatch(1) != RuleMatch(1, 0)
    assert len({RuleMatch(1), RuleMatch(1), RuleMatch(1, 0)}) == 2


def test_a_rule_keeps_its_name_when_others_come_before_it() -> None:
    before, after = ScriptEngine(Script((ALPHA, BETA))), ScriptEngine(Script((FALLBACK, BETA, ALPHA)))
    assert [after.index_by_key[name] for name in before.rule_keys] == [2, 1]


def test_rules_with_the_same_pattern_have_names_of_their_own() -> None:
    script = ScriptEngine(Script((BETA, BETA, replace(BETA, name="named"))))
    assert len(set(script.rule_keys)) == 3
    assert script.index_by_key["named"] == 2
