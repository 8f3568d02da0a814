from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import PERSONAS
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend


WEIGHING = ("greedy", "cautious", "planner", "saboteur")
OUT = at_most("out", "state.a", 0)
# A condition that is as far as can be, whatever happens: it leaves the choice to the others.
FAR = {"id": "far", "when": {"==": ["x", "y"]}}


def inc(path: str, value: float | str) -> dict[str, Any]:
    return {"op": "inc", "path": path, "value": value}


def dec(path: str, value: float) -> dict[str, Any]:
    return {"op": "dec", "path": path, "value": value}


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value}


def at_least(name: str, path: str, limit: float) -> dict[str, Any]:
    return {"id": name, "when": {">=": [{"var": path}, limit]}}


def scenario(core: Backend, **parts: Any) -> Program:
    return program_on(core, document(**{"loss_conditions": [OUT, FAR], "horizon": 20, **parts}))


def taken(program: Program, persona: Any, **options: Any) -> dict[str, int]:
    """How often each action was taken."""
    detail = program.dry_run(persona=persona, detail=True, **options).detail
    assert detail is not None
    return {name: use.taken for name, use in detail.actions.items()}


def tug(core: Backend) -> Program:
    """Actions both ways, and events that hurt."""
    return scenario(
        core,
        state={"a": 8},
        actions=[action("harm", [dec("state.a", 2)]), action("mend", [inc("state.a", 1)]), action("wait")],
        random_events=[event("dip", [dec("state.a", 1)], weight=0.3)],
    )


def test_greedy_avoids_the_loss_that_a_random_player_runs_into(core: Backend) -> None:
    program = tug(core)
    assert program.dry_run(runs=30, persona="random").fail_rate > 0.5
    assert program.dry_run(runs=30, persona="greedy").lost == 0


def test_the_saboteur_loses_soonest(core: Backend) -> None:
    reports = {persona: tug(core).dry_run(runs=4, persona=persona) for persona in PERSONAS}
    assert reports["saboteur"].lost == 4
    assert all(
        reports["saboteur"].turns < other.turns for name, other in reports.items() if name != "saboteur"
    )


def test_the_planner_sees_the_trap_that_greed_falls_into(core: Backend) -> None:
    bait = [inc("state.a", 2), {"op": "schedule", "id": "trap", "after": 1, "effects": [dec("state.a", 9)]}]
    program = scenario(
        core,
        state={"a": 6},
        horizon=8,
        actions=[action("bait", bait), action("work", [inc("state.a", 1)])],
    )
    assert program.dry_run(runs=4, persona="greedy").lost == 4
    assert program.dry_run(runs=4, persona="planner").lost == 0


def test_cautious_avoids_the_rare_disaster_that_greed_risks(core: Backend) -> None:
    exposed = {"!!": [{"var": "state.exposed"}]}
    program = scenario(
        core,
        state={"a": 8, "exposed": False},
        actions=[
            action("climb", [inc("state.a", 2), put("state.exposed", True)]),
            action("walk", [inc("state.a", 1), put("state.exposed", False)]),
        ],
        random_events=[event("fall", [put("state.a", 0)], weight=0.05, when=exposed)],
    )
    assert program.dry_run(runs=30, persona="greedy").lost > 5
    assert program.dry_run(runs=30, persona="cautious").lost == 0


def test_cautious_does_not_fear_an_event_that_lasts_already_or_cannot_happen(core: Backend) -> None:
    program = scenario(
        core,
        state={"a": 50, "guard": False, "zero": 0},
        horizon=9,
        actions=[action("guard", [put("state.guard", True), dec("state.a", 1)])],
        random_events=[
            event("unknown", [put("state.a", 0)], when={">": [{"/": [1, {"var": "state.zero"}]}, 0]}),
            event("failing", [put("state.a", 0), {"op": "pop", "path": "state.a"}]),
            event("far", [put("state.a", 0)], when={"<": [{"var": "state.a"}, 0]}),
        ],
    )
    assert taken(program, "cautious", runs=3) == {"guard": 0}


def test_nobody_knows_the_luck_of_the_run(core: Backend) -> None:
    """Whoever saw the draws to come would expose himself only where nothing happens."""
    program = scenario(
        core,
        state={"a": 4, "exposed": False},
        horizon=12,
        actions=[action("dare", [inc("state.a", 3), put("state.exposed", True)])],
        random_events=[
            event(
                "hit",
                [dec("state.a", 6), put("state.exposed", False)],
                when={"!!": [{"var": "state.exposed"}]},
            ),
        ],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 1}},
    )
    report = program.dry_run(runs=10, persona="planner", detail=True)
    assert report.detail is not None
    assert report.detail.events["hit"] > 3


def test_those_who_do_the_same_have_the_same_luck(core: Backend) -> None:
    """The saboteur finds nothing here that would harm; so the events are those of an idle run."""
    program = scenario(
        core,
        state={"a": 8},
        actions=[action("mend", [inc("state.a", 1)])],
        random_events=[event("dip", [dec("state.a", 2)]), event("gift", [inc("state.a", 1)])],
    )
    digests = {
        persona: program.dry_run(runs=4, persona=persona, digest=True).digest
        for persona in ("idle", "saboteur", "greedy", "planner")
    }
    assert digests["saboteur"] == digests["idle"] != digests["greedy"] == digests["planner"]


def test_the_parameters_drawn_for_the_choices_are_the_same_for_all(core: Backend) -> None:
    params = {"n": {"type": "integer", "minimum": 1, "maximum": 1000}}
    gain = action("gain", [inc("state.a", "n")], params=params, derives={"n": {"var": "params.n"}})
    program = scenario(core, actions=[gain], horizon=5)
    digests = {
        persona: program.dry_run(runs=3, persona=persona, digest=True).digest
        for persona in ("greedy", "cautious", "planner", "random")
    }
    assert digests["greedy"] == digests["cautious"] == digests["planner"] == digests["random"]


@pytest.mark.parametrize("persona", WEIGHING)
def test_where_nothing_matters_nothing_is_done(core: Backend, persona: Any) -> None:
    program = scenario(core, loss_conditions=[FAR, {**FAR, "id": "b"}], horizon=4)
    assert taken(program, persona, runs=2) == {"act": 0}


def test_of_equal_choices_the_first_is_taken(core: Backend) -> None:
    actions = [action(name, [inc("state.a", 1)]) for name in ("one", "two")]
    assert taken(scenario(core, actions=actions, horizon=4), "greedy", runs=2) == {"one": 8, "two": 0}


@pytest.mark.parametrize("persona", WEIGHING)
def test_what_would_fail_is_not_done_and_not_reported(core: Backend, persona: Any) -> None:
    for sign in (1, -1):
        failing = action("fail", [inc("state.a", 5 * sign), {"op": "pop", "path": "state.empty"}])
        program = scenario(core, state={"a": 8, "empty": []}, actions=[failing], horizon=4)
        report = program.dry_run(runs=2, persona=persona, detail=True)
        assert report.errors == ()
        assert report.detail is not None
        assert (report.detail.actions["fail"].legal, report.detail.actions["fail"].taken) == (8, 0)


def test_to_outgrow_the_limits_is_as_bad_as_a_loss(core: Backend) -> None:
    text = {"long": {"cat": [{"var": "state.text"}, {"var": "state.text"}]}}
    burst = action("burst", [put("state.text", "long"), inc("state.a", 9)], derives=text)
    program = scenario(
        core,
        state={"a": 8, "text": "€" * 20_000},
        actions=[burst, action("down", [dec("state.a", 1)])],
    )
    assert program.dry_run(runs=2, persona="saboteur", horizon=3).errored == 2
    assert program.dry_run(runs=2, persona="greedy", horizon=3).survived == 2


def dear(times: int) -> dict[str, Any]:
    """Derived values of about 4,000 steps each."""
    return {f"d{n}": {"in": [-1, {"var": "state.many"}]} for n in range(times)}


def test_what_an_event_would_cost_is_feared_as_a_loss(core: Backend) -> None:
    program = scenario(
        core,
        state={"a": 8, "many": [0] * 4_000},
        horizon=1,
        actions=[action("rise", [inc("state.a", 1)])],
        random_events=[event("dear", weight=0.05, when={">": [{"var": "state.a"}, 8]}, derives=dear(26))],
    )
    assert taken(program, "greedy", runs=2) == {"rise": 2}
    assert taken(program, "cautious", runs=2) == {"rise": 0}


def test_looking_ahead_does_not_pay_for_opening_the_turn(core: Backend) -> None:
    """So an action can be chosen that its own call, which opens the turn, cannot pay."""
    costly = [put("state.list", [0] * 1_000)] * 4
    program = scenario(
        core,
        state={"a": 8, "many": [0] * 4_000, "list": [0] * 1_000},
        horizon=4,
        actions=[
            action(
                "plan",
                [inc("state.a", 1), {"op": "schedule", "id": "s", "after": 1, "effects": costly}],
                preconditions={"==": [{"var": "turn"}, 1]},
            ),
            action("climb", [inc("state.a", 2)], derives=dear(24), preconditions={">": [{"var": "turn"}, 1]}),
        ],
    )
    report = program.dry_run(runs=1, persona="greedy")
    assert (report.errored, report.turns, report.errors[0].code) == (1, 1, "TURN_LIMIT")
    assert program.dry_run(runs=1, persona="idle").survived == 1


def test_what_is_due_in_a_turn_is_known_when_it_is_chosen_in(core: Backend) -> None:
    """The second turn begins with the fall, after which only the rope helps."""
    fall = {"op": "schedule", "id": "fall", "after": 1, "effects": [put("state.a", -5)]}
    program = scenario(
        core,
        state={"a": 5},
        horizon=2,
        actions=[
            action("start", [inc("state.a", 1), fall], preconditions={"==": [{"var": "turn"}, 1]}),
            action("rope", [put("state.a", 1)], preconditions={"==": [{"var": "turn"}, 2]}),
        ],
    )
    assert taken(program, "greedy", runs=1) == {"start": 1, "rope": 1}


def test_a_win_is_worth_more_than_any_safety(core: Backend) -> None:
    program = scenario(
        core,
        state={"a": 8, "b": 0},
        actions=[action("safe", [inc("state.a", 100)]), action("win", [inc("state.b", 1)])],
        win_conditions=[at_least("done", "state.b", 3)],
    )
    report = program.dry_run(runs=2, persona="planner")
    assert report.won == 2


def test_who_plans_stops_at_the_horizon(core: Backend) -> None:
    """What falls due after the last turn is nothing to fear."""
    late = {"op": "schedule", "id": "late", "after": 4, "effects": [put("state.a", 0)]}
    loan = action("loan", [inc("state.a", 1), late])
    program = scenario(core, state={"a": 8}, actions=[loan])
    assert taken(program, "planner", runs=1, horizon=3)["loan"] == 3
    assert program.dry_run(runs=1, persona="planner", horizon=12).lost == 0


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_run_depends_on_nothing_but_its_number(core: Backend, persona: Any) -> None:
    program = tug(core)
    whole = program.dry_run(runs=3, persona=persona, detail=True, watch={"state.a": 3})
    parts = [
        program.dry_run(runs=runs, first_run=first, persona=persona, detail=True, watch={"state.a": 3})
        for first, runs in ((0, 1), (1, 2))
    ]
    assert parts[0].merge(parts[1]) == whole


def test_never_is_no_more_than_half_way(core: Backend) -> None:
    """A comparison of constants has the distance of a number that stays where it was."""
    program = scenario(core, state={"a": 8}, loss_conditions=[OUT, never("b")], horizon=4)
    assert taken(program, "greedy", runs=1) == {"act": 0}
