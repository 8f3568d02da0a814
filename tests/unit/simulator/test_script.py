"""Which rule or turn answers, and where a conversation is then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.sim.patterns import Pattern, Subject, TextKind, TextPattern
from peripety.simulator.scenario.model import Failure, Response, Rule, Scenario, Turn
from peripety.simulator.script import Match, Position, Script

ANY = Pattern()


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


def said(text: str) -> Response:
    return Response(text=text)


ALPHA = Rule(
    contains("alpha"),
    said("entered"),
    turns=(Turn(ANY, said("first")), Turn(contains("go"), said("second"))),
)
BETA = Rule(contains("beta"), said("other"))
FALLBACK = Rule(ANY, said("fallback"))
SCRIPT = Script(Scenario((ALPHA, BETA, FALLBACK)))


def played(script: Script, *prompts: str) -> list[Match | None]:
    """What answers each of some prompts, one after the other."""
    position: Position | None = None
    counts: dict[int, int] = {}
    matches = []
    for prompt in prompts:
        advance = script.advance(Subject(prompt), position, counts)
        position = advance.position
        if advance.entered is not None:
            counts[advance.entered] = counts.get(advance.entered, 0) + 1
        matches.append(advance.match)
    return matches


def test_the_first_rule_that_matches_answers() -> None:
    assert played(SCRIPT, "beta and alpha") == [Match(0)]
    assert played(SCRIPT, "beta") == [Match(1)]
    assert played(SCRIPT, "neither") == [Match(2)]


def test_nothing_answers_where_no_rule_matches() -> None:
    assert played(Script(Scenario((BETA,))), "alpha") == [None]


def test_a_sequence_advances_turn_by_turn_and_ends_after_its_last() -> None:
    assert played(SCRIPT, "alpha", "whatever", "go", "go") == [Match(0), Match(0, 0), Match(0, 1), Match(2)]


def test_what_a_turn_does_not_expect_ends_the_sequence_and_is_matched_as_usual() -> None:
    assert played(SCRIPT, "alpha", "whatever", "beta", "go") == [Match(0), Match(0, 0), Match(1), Match(2)]


def test_what_ends_a_sequence_may_enter_it_again() -> None:
    assert played(SCRIPT, "alpha", "whatever", "alpha", "whatever", "go") == [
        Match(0),
        Match(0, 0),
        Match(0),
        Match(0, 0),
        Match(0, 1),
    ]


def test_an_expected_prompt_stays_in_the_sequence_though_an_earlier_rule_matches_it() -> None:
    script = Script(Scenario((BETA, ALPHA)))
    assert played(script, "alpha", "beta") == [Match(1), Match(1, 0)]


def test_a_rule_is_entered_as_often_as_it_may_and_its_turns_are_not_counted() -> None:
    script = Script(Scenario((replace(ALPHA, max_matches=1), BETA)))
    assert played(script, "alpha", "x", "go", "alpha", "beta") == [
        Match(0),
        Match(0, 0),
        Match(0, 1),
        None,
        Match(1),
    ]


def test_a_rule_that_may_never_be_entered_is_not() -> None:
    script = Script(Scenario((replace(FALLBACK, max_matches=0), BETA)))
    assert played(script, "beta", "alpha") == [Match(1), None]


def test_a_match_leads_to_what_the_rule_or_its_turn_says() -> None:
    failure = Failure("auth_error", {"message": "no"})
    script = Script(Scenario((Rule(ANY, said("entered"), turns=(Turn(ANY, failure=failure),)),)))
    assert script.step(Match(0)).response == said("entered")
    assert script.step(Match(0)).failure is None
    assert script.step(Match(0, 0)).failure == failure


@pytest.mark.parametrize(
    ("match", "label"), [(Match(3), "response[3]"), (Match(0, 1), "response[0].turn[1]")]
)
def test_a_match_is_labelled_by_its_place_in_the_file(match: Match, label: str) -> None:
    assert match.label == label


def test_matches_compare_by_place() -> None:
    assert Match(1) == Match(1)
    assert Match(1) != Match(1, 0)
    assert len({Match(1), Match(1), Match(1, 0)}) == 2


def test_a_rule_keeps_its_name_when_others_come_before_it() -> None:
    before, after = Script(Scenario((ALPHA, BETA))), Script(Scenario((FALLBACK, BETA, ALPHA)))
    assert [after.indices[name] for name in before.names] == [2, 1]


def test_rules_with_the_same_pattern_have_names_of_their_own() -> None:
    script = Script(Scenario((BETA, BETA, replace(BETA, name="named"))))
    assert len(set(script.names)) == 3
    assert script.indices["named"] == 2
