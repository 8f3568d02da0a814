"""Players that read: solutions, curiosity, lookahead, trivial wins, and reasons in findings."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.certification.difficulty_gate import BudgetMiss, GateVerdict, evaluate_to_verdict
from peripety.certification.options import DryRunOptions
from peripety.certification.player_checks import check_new_document, find_decision
from peripety.certification.player_texts import explain
from peripety.certification.solution_trace import measure_slips
from peripety.errors import Finding, Severity
from support.engine.specs import action, at_most, event, program, spec
from support.scenario.batches import WORKERS

RANDOM = DryRunOptions(max_runs=512)


def quest(
    *,
    questions: int = 3,
    suspects: int = 4,
    supply: float = 9,
    harm: float = 3,
    traps: int = 0,
    solved: bool = True,
    told: bool = True,
    **parts: Any,
) -> dict[str, Any]:
    """Several questions, the last of which shows what was dealt, and then one guess at it."""
    values = [f"v{number}" for number in range(suspects)]
    who = {"who": {"type": "string", "enum": values}}
    ready = {">=": [{"var": "state.b"}, questions]}
    is_last = {"and": [told, {">=": [{"var": "state.b"}, questions - 1]}]}
    right = {"==": [{"var": "params.who"}, {"var": "state.hidden.k"}]}
    document = spec(
        spec_version="1.1",
        state={"a": supply, "b": 0, "seen": "", "hidden": {"k": "v0"}},
        horizon=15,
        deal=[{"id": "k", "path": "state.hidden.k", "values": values}],
        actions=[
            action(
                "ask",
                [
                    {"op": "inc", "path": "state.b", "value": 1},
                    {"op": "set", "path": "state.seen", "value": "heard"},
                ],
                preconditions={"!": ready},
                derives={"heard": {"if": [is_last, {"var": "state.hidden.k"}, ""]}},
            ),
            action(
                "guess",
                [{"op": "set", "path": "state.b", "value": "result"}],
                params=who,
                preconditions=ready,
                derives={"result": {"if": [right, 100, -5]}},
            ),
            *(
                action(f"t{number}", [{"op": "set", "path": "state.b", "value": -5}])
                for number in range(traps)
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
        ({"suspects": 2, "supply": 60, "harm": 1, "questions": 1}, "CURIOUS_WINS"),
    ],
)
async def test_a_rate_of_a_reader_out_of_its_limits_refuses(changes: dict[str, Any], code: str) -> None:
    verdict = await judged(quest(**changes))
    assert code in codes(verdict)
    assert not verdict.is_accepted
    assert verdict.players


async def test_a_win_that_comes_to_a_player_who_does_nothing_refuses() -> None:
    over = {"id": "over", "when": {">=": [{"var": "turn"}, 4]}}
    document = quest(supply=30)
    waited = await judged({**document, "win_conditions": [*document["win_conditions"], over]})
    message = found(waited, "IDLE_WINS").message
    assert "the idle persona wins 100.0%" in message
    assert "at most 5%" in message
    assert not waited.is_accepted
    assert "IDLE_WINS" not in codes(await judged(document))


async def test_a_solution_that_always_wins_is_a_warning() -> None:
    verdict = await judged(quest(harm=1))
    assert found(verdict, "SOLUTION_CERTAIN").severity is Severity.WARNING


async def test_a_finding_tells_rate_limit_causes_turn_and_path() -> None:
    failing = await judged(quest(supply=6, harm=6))
    lost = found(failing, "SOLUTION_FAILS").message
    assert "the par persona wins" in lost
    assert "at least 60% is required" in lost
    assert "of its losses 100% by 'out'" in lost
    assert "step" not in lost
    (steps,) = (line for line in failing.figures if line.startswith("steps in 64 runs: "))
    assert "lost by 'out' before step 1 'guess' in 45, at the median in turn 2" in steps
    won = found(await judged(quest(suspects=2, supply=60, harm=1, questions=1)), "CURIOUS_WINS").message
    assert "it wins in turn 2 at the median of " in won
    assert "times by ask, guess" in won


async def test_every_player_is_told_with_its_band_also_one_inside() -> None:
    verdict = await judged(quest(suspects=2, supply=60, harm=1, questions=1))
    told = dict(line.split(": ", 1) for line in verdict.figures)
    assert [*told] == ["par", "curious", "greedy", "planner", "idle", "random"]
    advised = "(must be at least 60%, and at most 95% is advised: inside, but too high for the advice)"
    assert f"{advised}; median turn of wins 2" in told["par"]
    assert "(must be at most 50%, and at least 15% is advised: too high)" in told["curious"]
    assert told["idle"].startswith("wins 0.0% of ")
    assert "(must be at most 5%: inside)" in told["idle"]
    assert "(must be at least 25%: inside); lost " in told["random"]
    unsolved = await judged(quest(solved=False, supply=30))
    assert any(
        line.startswith("greedy: loses 0.0% of 64 runs (must be 20% to 45%: too low)")
        for line in unsolved.figures
    )
    (only,) = (await judged(trivial("1.0"))).figures
    assert only.startswith("random: loses ")


async def test_of_a_choice_among_n_that_the_win_depends_on_a_share_of_one_in_n_is_advised() -> None:
    verdict = await judged(quest(suspects=8))
    assert "CURIOUS_LOSES" not in codes(verdict)
    band = "(must be at most 50%, and at least 3.75% is advised: inside)"
    assert any("curious" in line and band in line for line in verdict.figures)


async def test_a_scenario_that_trying_seldom_or_never_wins_is_accepted_with_a_warning() -> None:
    verdict = await judged(quest(questions=1, traps=4))
    assert found(verdict, "CURIOUS_LOSES").severity is Severity.WARNING
    message = found(verdict, "CURIOUS_LOSES").message
    assert "at least 7.5% is advised (the win depends on 'guess', a choice among 4" in message
    assert any("inside, but too low for the advice" in line for line in verdict.figures)
    assert verdict.is_accepted


async def test_a_scenario_with_more_moves_than_can_be_tried_has_no_advice_about_trying() -> None:
    verdict = await judged(quest(traps=24))
    assert "CURIOUS_LOSES" not in codes(verdict)
    assert verdict.is_accepted
    (line,) = (line for line in verdict.figures if line.startswith("curious: "))
    assert "wins 0.0% of " in line
    assert "(must be at most 50%: inside)" in line


async def test_a_limit_inside_the_interval_of_the_last_runs_is_not_missed() -> None:
    verdict = await evaluate_to_verdict(
        program(quest(suspects=2, supply=60, harm=1, questions=1)), DryRunOptions(max_runs=64), WORKERS
    )
    assert "CURIOUS_WINS" not in codes(verdict)


async def test_a_solution_that_knows_what_no_player_can_know_is_a_guess() -> None:
    guess = found(await judged(quest(told=False)), "SOLUTION_GUESSES")
    assert (guess.path, guess.severity) == ("/solutions", Severity.WARNING)
    assert (
        "in 3 of 3 games a move of the solutions is a guess: in turn 4 it is 'guess' (who: v" in guess.message
    )
    assert "SOLUTION_GUESSES" not in codes(await judged(quest()))


async def test_values_that_are_tried_in_one_order_are_no_guess() -> None:
    blind = quest(told=False)
    steps = [
        {"action": "guess", "params": {"who": value}, "otherwise": {"action": "ask"}}
        for value in ("v0", "v1")
    ]
    blind["solutions"] = [{"id": "s", "steps": steps}]
    assert "SOLUTION_GUESSES" not in codes(await judged(blind))


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({}, 4),
        ({"loss_conditions": [at_most("out", "state.a", 0), at_most("less", "state.a", -1)]}, None),
        ({"win_conditions": [{"id": "w", "when": {">": [{"var": "state.a"}, 50]}}]}, None),
        (
            {
                "win_conditions": [
                    *quest()["win_conditions"],
                    {"id": "w", "when": {">": [{"var": "turn"}, 9]}},
                ]
            },
            None,
        ),
    ],
)
def test_a_decision_writes_what_every_win_reads_and_has_a_price(
    change: dict[str, Any], count: int | None
) -> None:
    document = quest(**change)
    assert find_decision(document) == (None if count is None else ("guess", count))
    document["actions"][1]["once"] = True
    assert (find_decision(document) is None) == ("win_conditions" in change)


async def test_steps_that_do_worse_than_trying_everything_are_one_finding() -> None:
    wrong = [{"id": "s", "steps": [{"action": "guess", "params": {"who": "v0"}}]}]
    verdict = await judged(quest(suspects=2, supply=30, solutions=wrong))
    assert {"SOLUTION_FAILS", "CURIOUS_WINS"}.isdisjoint(codes(verdict))
    message = found(verdict, "SOLUTION_MISLEADS").message
    assert "change the steps, not the numbers" in message
    (steps,) = (line for line in verdict.figures if line.startswith("steps in 64 runs: "))
    assert "for lack of b ≥ 3" in steps
    assert "a turn is lost at step 1 'guess', which is not legal, in 64, at the median in turn 1" in steps


def mill(**parts: Any) -> dict[str, Any]:
    """One action is to be repeated; the others are of no use."""
    vain = [action(f"u{number}") for number in range(6)]
    document = spec(
        spec_version="1.1",
        state={"a": 14, "b": 0},
        horizon=20,
        actions=[action("turn", [{"op": "inc", "path": "state.b", "value": 1}]), *vain],
        loss_conditions=[at_most("out", "state.a", 0), at_most("less", "state.a", -1)],
        win_conditions=[{"id": "w", "when": {">=": [{"var": "state.b"}, 8]}}],
        random_events=[event("drop", [{"op": "dec", "path": "state.a", "value": 3}])],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 1}},
        solutions=[{"id": "s", "steps": [{"action": "turn"}]}],
    )
    return {**document, **parts}


async def test_where_nothing_is_hidden_a_player_who_looks_ahead_shows_that_a_win_can_be_found() -> None:
    verdict = await judged(mill())
    assert "CURIOUS_LOSES" not in codes(verdict)
    assert any(
        "curious: wins 0.0%" in line and "or greedy or planner wins as often: inside" in line
        for line in verdict.figures
    )
    read = {"and": [{">=": [{"var": "state.b"}, 8]}, {"==": [{"var": "state.hidden.k"}, 1]}]}
    hidden = mill(state={"a": 14, "b": 0, "hidden": {"k": 1}}, win_conditions=[{"id": "w", "when": read}])
    assert "CURIOUS_LOSES" in codes(await judged(hidden))


async def test_where_nothing_is_hidden_foresight_that_hardly_ever_fails_is_a_warning() -> None:
    safe = mill(random_events=[])
    verdict = await judged(safe)
    warning = found(verdict, "FORESIGHT_WINS")
    assert warning.severity is Severity.WARNING
    assert "the greedy persona wins 100.0%" in warning.message
    assert "at most 95% is advised" in warning.message
    assert any(
        line.startswith("greedy: ")
        and "(at most 95% is advised: inside, but too high for the advice)" in line
        for line in verdict.figures
    )
    endangered = await judged(mill())
    assert "FORESIGHT_WINS" not in codes(endangered)
    assert any("(at most 95% is advised: inside)" in line for line in endangered.figures)
    read = {"and": [{">=": [{"var": "state.b"}, 8]}, {"==": [{"var": "state.hidden.k"}, 1]}]}
    hidden = {"state": {"a": 14, "b": 0, "hidden": {"k": 1}}}
    won = [{"id": "w", "when": read}]
    assert "FORESIGHT_WINS" not in codes(await judged({**safe, **hidden, "win_conditions": won}))


async def test_steps_that_do_worse_than_lookahead_are_wrong_where_nothing_is_hidden() -> None:
    slow = [{"id": "s", "steps": [{"action": "u0"}, {"action": "u1"}, {"action": "turn"}]}]
    message = found(await judged(mill(solutions=slow)), "SOLUTION_MISLEADS").message
    assert "a player who looks ahead" in message
    assert " persona takes in a run turn " in message


async def test_of_few_wins_no_turn_and_no_path_is_told() -> None:
    report = program(quest()).dry_run(runs=64, persona="random")
    assert 0 < report.won < 16
    told = await explain(program(quest()), report, RANDOM, WORKERS)
    assert f"it wins {report.won} of 64 sampled runs, too few to show a usual way" in told


async def test_a_miss_of_the_random_persona_tells_why() -> None:
    verdict = await judged(
        quest(solved=False, negativity_budget={"min_fail_rate": 0.9, "decay_per_turn": {"state.a": 1}})
    )
    message = found(verdict, "TOO_EASY").message
    assert "of its losses" in message
    assert "by 'wrong'" in message
    assert "too few to show a usual way" in message


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
    assert "64 times by win" in warning.message
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
    assert told == f"it wins in turn 30 at the median of 64 wins, 64 times by {', '.join('pq' * 6)}, …"


def test_the_wins_of_a_solution_with_two_other_moves_are_measured() -> None:
    def measure(**parts: Any) -> str:
        scenario = program(quest(questions=4, harm=0, **parts))
        return measure_slips(scenario, scenario.dry_run(runs=64, persona="random", threads=1))

    ending = "without them 100.0% (no band); they are legal moves at random, each in a turn before 5"
    # Without traps every other move is a question that the solution needs, too.
    assert measure(supply=60) == f"par with 2 other moves: wins 100.0% of 64 runs, {ending}"
    trapped = measure(supply=60, traps=4)
    assert trapped.endswith(ending)
    assert trapped == measure(supply=60, traps=4)
    assert 0 < float(trapped.partition("wins ")[2].partition("%")[0]) < 30
    assert measure(supply=1) == ""
