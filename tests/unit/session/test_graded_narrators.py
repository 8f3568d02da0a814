"""Narrators of known quality come out in that order, and misdeeds are caught as documented."""

from __future__ import annotations

from peripety.session.narration.claims.conduct import find_misconduct
from support.engine.specs import spec
from support.session.claims import cases
from support.session.graded_narrators import count_misdeeds, grade, narrators


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
        "ending": 20,
        "unruled": 8,
        "playing_on": 1,
    }
    assert {kind: noticed for kind, (_, noticed, _) in counts.items() if noticed} == {
        "unruled": 8,
        "playing_on": 20,
        "thoughts": 17,
        "ending": 20,
        "tense": 19,
        "schema": 20,
    }
    assert {total for _, _, total in counts.values()} == {20}


def test_misconduct_depends_on_the_tense_of_the_premise() -> None:
    past = spec(premise={"text": "x", "tense": "past"})
    assert find_misconduct(spec(), None, "The wind was cold.") == ("tense",)
    assert find_misconduct(past, None, "The wind was cold.") == ()
    assert find_misconduct(past, None, "The wind is cold.") == ("tense",)
