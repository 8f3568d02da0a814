"""Repair history: a repair is identified by its code and its part, independent of the part's position.

Changed numbers are tracked until the model rewrites them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.schema_validation import MAX_FINDINGS
from peripety.errors import Finding, Severity
from peripety.scenario.generation.draft import FindingHistory, filter_present_moves
from peripety.scenario.generation.evaluation import EvaluationDepth, SpecEvaluation
from peripety.scenario.types import NumberEdit
from support.engine.specs import action, event, spec

if TYPE_CHECKING:
    from collections.abc import Sequence


ONE_TWO = spec(actions=[action("one"), action("two")])
TWO_ONE = spec(actions=[action("two"), action("one")])


def judged(
    *findings: tuple[str, str],
    depth: EvaluationDepth = EvaluationDepth.RULES,
    document: dict[str, Any] = ONE_TWO,
) -> SpecEvaluation:
    return SpecEvaluation(document, depth, tuple(Finding(code, path, "") for code, path in findings))


def relapses_after(*judgements: SpecEvaluation) -> Sequence[tuple[str, ...]]:
    ledger = FindingHistory()
    for before, after in pairwise(judgements[:-1]):
        ledger.record(before, after)
    return ledger.find_regressions(judgements[-1])


def test_what_was_mended_and_is_wrong_again_is_a_relapse() -> None:
    wrong = judged(("A", "/actions/0/effects/1"))
    assert relapses_after(wrong, judged(), wrong) == (("actions", "one"),)


def test_what_never_went_away_is_none() -> None:
    wrong = judged(("A", "/actions/0"))
    assert relapses_after(wrong, wrong, wrong) == ()


def test_the_same_part_is_known_after_it_has_moved_and_the_same_place_is_not_enough() -> None:
    wrong, moved = judged(("A", "/actions/0")), judged(("A", "/actions/1"), document=TWO_ONE)
    assert relapses_after(wrong, judged(), moved) == (("actions", "one"),)
    assert relapses_after(wrong, judged(), judged(("A", "/actions/0"), document=TWO_ONE)) == ()


def test_another_code_is_another_finding() -> None:
    assert relapses_after(judged(("A", "/actions/0")), judged(), judged(("B", "/actions/0"))) == ()


def test_a_warning_is_no_relapse() -> None:
    warned = SpecEvaluation(
        ONE_TWO,
        EvaluationDepth.RULES,
        (Finding("A", "/actions/0", "", Severity.WARNING),),
    )
    assert relapses_after(judged(("A", "/actions/0")), judged(), warned) == ()


def test_what_was_not_looked_into_is_not_known_to_be_mended() -> None:
    too_easy = judged(("TOO_EASY", "/negativity_budget"), depth=EvaluationDepth.GATE)
    ill_formed = judged(("MISSING_KEY", "/actions/0"), depth=EvaluationDepth.FORM)
    assert relapses_after(too_easy, ill_formed, too_easy) == ()


def test_the_gate_stops_at_the_first_thing_it_minds() -> None:
    drifting = judged(("POSITIVE_DRIFT", "/state/a"), depth=EvaluationDepth.GATE)
    too_easy = judged(("TOO_EASY", "/negativity_budget"), depth=EvaluationDepth.GATE)
    assert relapses_after(drifting, too_easy, drifting) == ()
    assert relapses_after(drifting, judged(depth=EvaluationDepth.CERTIFICATE), drifting) == (("state", "a"),)


def test_a_list_that_was_cut_does_not_say_what_is_mended() -> None:
    many = judged(*(("B", f"/actions/{index % 2}") for index in range(MAX_FINDINGS)))
    wrong = judged(("A", "/actions/0"))
    assert relapses_after(wrong, many, wrong) == ()


EFFECTS = [{"op": "dec", "path": "state.a", "value": 3}]
MOVED = spec(random_events=[event("one", EFFECTS), event("two", EFFECTS)])
AMOUNT = NumberEdit("/random_events/1/effects/0/value", 2, 3, "event 'two': dec a by 2 → 3")
DECAY = NumberEdit("/negativity_budget/decay_per_turn/state.a", 1, 2)


def test_a_move_is_found_where_its_part_went() -> None:
    after = {**MOVED, "random_events": [event("two", EFFECTS, duration="2h")]}
    assert filter_present_moves((AMOUNT,), MOVED, after) == (
        replace(AMOUNT, path="/random_events/0/effects/0/value"),
    )


def test_a_key_with_a_dot_in_it_is_one_key() -> None:
    budget = {"min_fail_rate": 0.3, "decay_per_turn": {"state.a": 2}}
    moved = {**MOVED, "negativity_budget": budget}
    assert filter_present_moves((DECAY,), moved, {**moved, "horizon": 9}) == (DECAY,)


@pytest.mark.parametrize(
    "two",
    [
        [event("two", [{"op": "dec", "path": "state.a", "value": 4}])],
        [event("two")],
        [{"id": "two", "effects": "none"}],
        [],
    ],
)
def test_what_was_written_anew_or_is_gone_is_moved_no_longer(two: list[dict[str, Any]]) -> None:
    assert filter_present_moves((AMOUNT,), MOVED, {**MOVED, "random_events": two}) == ()
