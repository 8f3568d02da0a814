"""Players that read: solutions, curiosity, lookahead, trivial wins, and reasons in findings."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.errors import Finding, Severity
from peripety.scenario.dry_run.difficulty_gate import BudgetMiss, GateVerdict, evaluate_to_verdict
from peripety.scenario.dry_run.player_checks import check_new_document, explain
from peripety.scenario.types import DryRunOptions
from support.engine.specs import action, at_most, event, program, spec
from support.scenario.batches import WORKERS

RANDOM = DryRunOptions(max_runs=512)


def quest(
    *,
    questions: int = 3,
    suspects: int = 4,
    supply: float = 9,
    harm: float = 3,
    solved: bool = True,
    **parts: Any,
) -> dict[str, Any]:
    """Several questions, and then one guess at what was dealt."""
    values = [f"v{number}" for number in range(suspects)]
    who = {"who": {"type": "string", "enum": values}}
    ready = {">=": [{"var": "state.b"}, questions]}
    right = {"==": [{"var": "params.who"}, {"var": "state.hidden.k"}]}
    document = spec(
        spec_version="1.1",
        state={"a": supply, "b": 0, "hidden": {"k": "v0"}},
        horizon=15,
        deal=[{"id": "k", "path": "state.hidden.k", "values": values}],
        actions=[
            action("ask", [{"op": "inc", "path": "state.b", "value": 1}], preconditions={"!": ready}),
            action(
                "guess",
                [{"op": "set", "path": "state.b", "value": "result"}],
                params=who,
                preconditions=ready,
                derives={"result": {"if": [right, 100, -5]}},
            ),
        ],
        loss_conditions=[
            {"id": "wrong", "when": {"<": [{"var": "state.b"}, 0]}},
            at_most("out", "state.a", 0),
        ],
        win_conditions=[{"id": "found", "when": {">": [{"var": "state.b"}, 50]}}],
        random_events=[event("drop", [{"op": "dec", "path": "state.a", "value": harm}])],
        negativity_budget={"min_fail_rate": 0.25, "max_fail_rate": 0.5, "decay_per_turn": {"state.a": 1}},
    )
    if solved:
        document["solutions"] = [
            {
                "id": value,
                "when": {"==": [{"var": "state.hidden.k"}, value]},
                "steps": [{"action": "guess", "params": {"who": value}, "otherwise": {"action": "ask"}}],
            }
            for value in values
        ]
    return {**document, **parts}


def trivial(version: str, **parts: Any) -> dict[str, Any]:
    """One action wins, and the random persona seldom finds it."""
    useless = [action(f"u{number}", preconditions={}) for number in range(9)]
    return spec(
        spec_version=version,
        state={"a": 5, "b": 0},
        horizon=20,
        actions=[action("win", [{"op": "set", "path": "state.b", "value": 1}]), *useless],
        loss_conditions=[at_most("out", "state.a", 0), at_most("less", "state.a", -1)],
        win_conditions=[{"id": "w", "when": {"==": [{"var": "state.b"}, 1]}}],
        negativity_budget={"min_fail_rate": 0.3, "decay_per_turn": {"state.a": 1}},
        **parts,
    )


async def judged(document: dict[str, Any]) -> GateVerdict:
    return await evaluate_to_verdict(program(document), RANDOM, WORKERS)


def codes(verdict: GateVerdict) -> list[str]:
    return [finding.code for finding in verdict.findings]


def found(verdict: GateVerdict, code: str) -> Finding:
    return next(finding for finding in verdict.findings if finding.code == code)


async def test_a_quest_that_its_solution_wins_is_accepted_although_random_players_lose_it() -> None:
    """`max_fail_rate` is not required: chance is not the game."""
    verdict = await judged(quest())
    assert verdict.report.fail_rate > 0.6
    assert [finding.severity for finding in verdict.findings] in ([], [Severity.WARNING])
    assert verdict.is_accepted


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"supply": 6, "harm": 6}, "SOLUTION_FAILS"),
        ({"suspects": 16}, "CURIOUS_LOSES"),
        ({"suspects": 2, "supply": 30}, "CURIOUS_WINS"),
    ],
)
async def test_a_rate_of_a_reader_out_of_its_limits_refuses(changes: dict[str, Any], code: str) -> None:
    verdict = await judged(quest(**changes))
    assert code in codes(verdict)
    assert not verdict.is_accepted
    assert verdict.players


async def test_a_solution_that_always_wins_is_a_warning() -> None:
    verdict = await judged(quest(harm=1))
    assert found(verdict, "SOLUTION_CERTAIN").severity is Severity.WARNING


async def test_a_finding_tells_rate_limit_causes_turn_and_path() -> None:
    lost = found(await judged(quest(supply=6, harm=6)), "SOLUTION_FAILS").message
    assert "the par persona wins" in lost
    assert "at least 60% is required" in lost
    assert "of its losses 100% by 'out'" in lost
    won = found(await judged(quest(suspects=2, supply=30)), "CURIOUS_WINS").message
    assert "it wins in turn 4 at the median, mostly by ask 3 times, guess" in won


async def test_a_miss_of_the_random_persona_tells_why() -> None:
    verdict = await judged(
        quest(solved=False, negativity_budget={"min_fail_rate": 0.9, "decay_per_turn": {"state.a": 1}})
    )
    message = found(verdict, "TOO_EASY").message
    assert "of its losses" in message
    assert "by 'wrong'" in message
    assert "mostly by ask 3 times, guess" in message


async def test_without_solutions_looking_ahead_neither_always_nor_hardly_ever_wins() -> None:
    assert {"SKILL_TOO_SAFE"} <= set(codes(await judged(quest(solved=False, supply=30))))
    assert {"SKILL_IN_VAIN"} <= set(codes(await judged(quest(solved=False, supply=6, harm=6))))
    idle = quest(solved=False, supply=90, harm=1)
    assert "IDLE_SURVIVES" in codes(await judged(idle))


async def test_the_maximum_is_asked_for_where_chance_is_the_game() -> None:
    """No action changes anything, so every player loses as often."""
    gamble = quest(solved=False, actions=[action("nothing")], win_conditions=[])
    verdict = await judged(gamble)
    assert verdict.miss is BudgetMiss.TOO_HARD
    assert not verdict.is_accepted


async def test_a_win_in_one_move_is_named_at_once() -> None:
    verdict = await judged(trivial("1.1"))
    warning = found(verdict, "WON_AT_ONCE")
    assert warning.severity is Severity.WARNING
    assert "the greedy persona wins 64 of 64 runs within 2 turns" in warning.message
    assert "mostly by win" in warning.message
    # Also beside a miss of the budget.
    budget = {"min_fail_rate": 0.95, "decay_per_turn": {"state.a": 1}}
    both = codes(await judged({**trivial("1.1"), "negativity_budget": budget}))
    assert {"TOO_EASY", "WON_AT_ONCE"} <= set(both)


async def test_a_document_of_version_1_0_is_judged_as_before() -> None:
    verdict = await judged(trivial("1.0"))
    assert verdict.findings == verdict.players == ()
    plain = {key: value for key, value in quest(solved=False).items() if key != "deal"}
    hard = await judged({**plain, "spec_version": "1.0"})
    assert (hard.miss, codes(hard)) == (BudgetMiss.TOO_HARD, ["TOO_HARD"])


async def test_a_new_document_of_version_1_0_must_not_be_won_at_once() -> None:
    random = (await judged(trivial("1.0"))).report
    findings, _ = await check_new_document(program(trivial("1.0")), random, RANDOM, WORKERS)
    assert [finding.code for finding in findings] == ["WON_AT_ONCE"]


async def test_a_curious_win_refutes_that_nothing_can_be_won() -> None:
    plain = {key: value for key, value in quest(solved=False).items() if key != "deal"}
    document = {**plain, "spec_version": "1.0"}
    random = (await judged(document)).report
    _, refuted = await check_new_document(program(document), random, RANDOM, WORKERS)
    assert "NEVER_WON" in refuted
    still = {**document, "actions": [action("nothing")]}
    random = (await judged(still)).report
    assert await check_new_document(program(still), random, RANDOM, WORKERS) == ((), frozenset())


async def test_long_paths_are_cut() -> None:
    steps = [{"action": name} for name in ("p", "q")]
    document = spec(
        spec_version="1.1",
        state={"a": 0},
        horizon=40,
        actions=[action(name, [{"op": "inc", "path": "state.a", "value": 1}]) for name in "pq"],
        win_conditions=[{"id": "w", "when": {">=": [{"var": "state.a"}, 30]}}],
        solutions=[{"id": "s", "steps": steps}],
    )
    report = program(document).dry_run(runs=64, persona="par")
    told = await explain(program(document), report, RANDOM, WORKERS)
    assert told == f"it wins in turn 30 at the median, mostly by {', '.join('pq' * 6)}, …"
