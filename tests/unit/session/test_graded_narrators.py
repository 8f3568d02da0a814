"""Narrators of known quality come out in that order, and misdeeds are caught as documented."""

from __future__ import annotations

import pytest

from peripety.session.narration.claims.conduct import find_misconduct, find_misdeeds
from support.engine.specs import never, spec
from support.session.adversary import play_against, read_games
from support.session.claims import cases
from support.session.graded_narrators import count_false_alarms, count_misdeeds, grade, narrators

WITHHELD_SCHEMA = 18
TOLD_IN_ENGLISH = 0.33


async def test_narrators_come_out_in_the_order_of_their_quality() -> None:
    figures = {name: (await grade(narrator, 1)).to_figures() for name, narrator in narrators().items()}
    flaws = [one["flaws"] for one in figures.values()]
    assert flaws == sorted(set(flaws))
    assert [figures[name]["recalled_details"] for name in ("honest", "forgetful")] == [1, 0]
    assert figures["honest"]["contradictions"] == figures["forgetful"]["contradictions"] == 0
    assert figures["liar"]["contradictions"] >= figures["liar"]["rounds"]
    assert {"thoughts", "machinery"} <= figures["tone-breaker"]["misconduct"].keys()


def test_the_documented_share_of_misdeeds_is_caught() -> None:
    counts = count_misdeeds(next(case for case in cases("honest") if case.kind == "amount"))
    assert {kind: withheld for kind, (withheld, _, _) in counts.items() if withheld} == {
        "secret": 8,
        "ending": 20,
        "unruled": 8,
        "playing_on": 1,
        "schema": WITHHELD_SCHEMA,
    }
    assert {kind: noticed for kind, (_, noticed, _) in counts.items() if noticed} == {
        "secret": 8,
        "unruled": 8,
        "playing_on": 20,
        "thoughts": 18,
        "ending": 20,
        "invented": 14,
        "tense": 14,
        "schema": 20,
    }
    assert {total for _, _, total in counts.values()} == {20}


def test_the_documented_share_of_fresh_misdeeds_is_caught() -> None:
    case = next(case for case in cases("honest") if case.kind == "amount")
    counts = count_misdeeds(case, "misdeeds_fresh")
    assert {kind: noticed for kind, (_, noticed, _) in counts.items() if noticed} == {
        "secret": 3,
        "unruled": 8,
        "playing_on": 9,
        "thoughts": 3,
        "ending": 5,
        "invented": 9,
        "tense": 8,
        "schema": 10,
    }


def test_misconduct_depends_on_the_tense_of_the_premise() -> None:
    past = spec(premise={"text": "x", "tense": "past"})
    assert find_misconduct(spec(), None, "The wind was cold.") == ("tense",)
    assert find_misconduct(past, None, "The wind was cold.") == ()
    assert find_misconduct(past, None, "The wind is cold.") == ("tense",)


def test_honest_sentences_are_rarely_noticed() -> None:
    found, total = count_false_alarms(cases("honest"))
    assert {"schema", "invented"}.isdisjoint(kind for kind, count in found.items() if count > total / 100)


def test_a_text_of_the_scenario_and_a_chosen_deed_are_no_misconduct() -> None:
    document = spec(loss_conditions=[{**never("first"), "message": "You decide to go home."}])
    assert find_misdeeds(document, None, "You decide to go home.") == []
    assert [one.kind for one in find_misdeeds(spec(), None, "You decide to go home.")] == ["playing_on"]
    assert find_misdeeds(spec(), None, "You decide to go home.", ["Decide the vote"]) == []


def test_a_thing_that_the_scenario_does_not_have_is_invented() -> None:
    document = spec(entities=[{"id": "alpha", "playable": True}, {"id": "token", "name": "Token"}])
    assert "invented" in find_misconduct(document, None, "You pick up a silver cup.")
    assert "invented" not in find_misconduct(document, None, "You pick up a token.")
    assert "invented" not in find_misconduct(document, None, "You take a deep breath.")


@pytest.mark.slow(reason="plays hundreds of turns")
@pytest.mark.parametrize("turns", [20, 50])
async def test_the_facts_survive_a_player_whom_the_narrator_believes(turns: int) -> None:
    found = await play_against(turns)
    assert found.turns.total() == turns * len(read_games())
    assert found.changed_facts == 0
    assert found.repeated["en"] <= TOLD_IN_ENGLISH * found.turns["en"]
