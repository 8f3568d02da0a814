from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import PERSONAS
from peripety.engine._reference.jsonlogic import evaluate
from peripety.engine._reference.jsonlogic_operators import is_truthy
from peripety.engine._reference.personas import compile_distance
from support.engine.backends import program_on
from support.engine.specs import action, at_most, document, event, never

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend


JUST_FAILED = (1 / 1024) / (1 / 1024 + 1)


def var(name: str) -> dict[str, str]:
    return {"var": f"state.{name}"}


def root(state: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: float(value) if type(value) is int else value for name, value in state.items()}
    return {"state": numbers, "params": {}, "derives": {}, "turn": 1.0, "entities": []}


def floats(logic: Any) -> Any:
    """Logic with the numbers that the border gives."""
    if isinstance(logic, dict):
        return {name: floats(item) for name, item in logic.items()}
    if isinstance(logic, list):
        return [floats(item) for item in logic]
    return float(logic) if type(logic) is int else logic


def distance(logic: Any, initial: dict[str, Any] | None = None, **state: Any) -> float:
    """The distance of a condition in a state of a scenario that begins with another."""
    return compile_distance(floats(logic), root(state if initial is None else initial))(root(state))


def away(gap: float, scale: float) -> float:
    """Return the distance that the documentation defines for a gap."""
    d = gap + scale / 1024
    return d / (d + scale)


@pytest.mark.parametrize(
    ("operator", "a", "b", "gap"),
    [
        ("<", 9, 4, 5),
        ("<", 4, 4, 0),
        ("<=", 9, 4, 5),
        (">", 4, 9, 5),
        (">", 4, 4, 0),
        (">=", 4, 9, 5),
        ("==", 4, 9, 5),
        ("==", 9, 4, 5),
        ("===", 9, 4, 5),
        ("===", 4, 9, 5),
    ],
)
def test_a_comparison_of_numbers_is_as_far_as_its_gap_on_the_scale_of_the_start(
    operator: str,
    a: float,
    b: float,
    gap: float,
) -> None:
    logic = {operator: [var("a"), var("b")]}
    assert distance(logic, {"a": 2, "b": 12}, a=a, b=b) == away(gap, 10)
    assert distance(logic, {"a": 12, "b": 2}, a=a, b=b) == away(gap, 10)


@pytest.mark.parametrize("operator", ["<=", ">=", "==", "==="])
def test_equal_numbers_are_no_distance_apart(operator: str) -> None:
    assert distance({operator: [var("a"), 4]}, a=4) == 0


@pytest.mark.parametrize("initial", [4, "4", True, None, [], {}, 4 + 1e-301])
def test_the_scale_is_1_where_the_start_has_none(initial: Any) -> None:
    logic = {">": [var("a"), 4]}
    assert distance(logic, {"a": initial}, a=1) == away(3, 1)


def test_the_scale_is_1_where_the_start_cannot_be_evaluated() -> None:
    logic = {">": [{"/": [1, var("a")]}, 4]}
    assert distance(logic, {"a": 0}, a=1) == away(3, 1)


def test_a_scale_next_to_nothing_is_1_so_that_what_does_not_hold_is_some_distance_away() -> None:
    assert distance({"<": [var("a"), 0]}, {"a": 5e-324}, a=0) == JUST_FAILED


def test_a_gap_and_a_scale_that_overflow_are_1e300() -> None:
    initial = {"a": 1.7e308, "b": -1.7e308}
    for operator in ("<", "<=", "==", "==="):
        assert distance({operator: [var("a"), var("b")]}, initial, **initial) == away(1e300, 1e300)
    assert distance({"<": [var("a"), 0]}, {"a": 1}, a=1.7e308) == 1


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({"==": [5, "5"]}, 0),
        ({"===": [5, "5"]}, 1),
        ({"<": ["a", "b"]}, 0),
        ({"<": ["b", "a"]}, 1),
        ({">": [True, 0]}, 0),
        ({">": [True, 1]}, 1),
        ({"<": [None, 1]}, 0),
        ({"==": [None, 1]}, 1),
        ({"===": [[1, 2], [1, 2]]}, 0),
        ({"<": [{"var": "state"}, 1]}, 1),
        ({"!=": [4, 4]}, 1),
        ({"!=": [4, 5]}, 0),
        ({"!==": [4, 4]}, 1),
        ({"!==": [4, "4"]}, 0),
    ],
)
def test_other_comparisons_hold_or_do_not(logic: Any, expected: float) -> None:
    assert distance(logic) == expected


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({}, 0),
        (True, 0),
        (0, 1),
        ("", 1),
        ([], 1),
        ([0], 0),
        ({"in": ["a", "cab"]}, 0),
        ({"in": ["x", "cab"]}, 1),
        ({"if": [True, {"<": [5, 1]}, True]}, 1),
        ({"some": [[1, 2], {">": [{"var": ""}, 1]}]}, 0),
        ({"+": [1, 1]}, 0),
    ],
)
def test_anything_else_holds_or_does_not_and_its_opposite_the_other_way(logic: Any, expected: float) -> None:
    assert distance(logic) == expected
    assert distance({"!": [logic]}) == 1 - expected


@pytest.mark.parametrize(
    "logic",
    [
        {"<": [{"/": [1, 0]}, 5]},
        {"==": [5, {"/": [1, 0]}]},
        {"!=": [5, {"/": [1, 0]}]},
        {"!!": [{"/": [1, 0]}]},
        {"<": [{"var": "state"}, 1]},
        {"and": True},
    ],
)
def test_what_cannot_be_evaluated_is_farthest_and_so_is_its_opposite(logic: Any) -> None:
    assert distance(logic) == 1
    assert distance({"!": [logic]}) == 1


NEAR, FAR, HELD = {"<": [var("a"), 4]}, {"<": [var("a"), 1]}, {"<": [var("a"), 9]}
NEAR_AWAY, FAR_AWAY = away(1, 1), away(4, 4)


@pytest.mark.parametrize(
    ("logic", "expected"),
    [
        ({"and": [NEAR, FAR, HELD]}, max(NEAR_AWAY, FAR_AWAY)),
        ({"or": [NEAR, FAR]}, min(NEAR_AWAY, FAR_AWAY)),
        ({"or": [NEAR, FAR, HELD]}, 0),
        ({"and": [NEAR]}, NEAR_AWAY),
        ({"!!": [NEAR]}, NEAR_AWAY),
        ({"!!": NEAR}, NEAR_AWAY),
        ({"and": [HELD, {"or": [FAR, {"and": [NEAR, HELD]}]}]}, min(NEAR_AWAY, FAR_AWAY)),
    ],
)
def test_of_several_conditions_the_farthest_or_the_nearest_counts(logic: Any, expected: float) -> None:
    assert distance(logic, a=5) == expected


OPPOSITES = {"<": ">=", ">": "<=", "==": "!=", "===": "!=="}
PAIRS = [(1, 2), (2, 1), (2, 2), ("1", 1), ("a", "b"), (True, 1), (None, 0), (0, 1e300)]


@pytest.mark.parametrize(("one", "other"), [*OPPOSITES.items(), *((b, a) for a, b in OPPOSITES.items())])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_opposite_of_a_comparison_is_the_other_comparison(one: str, other: str, a: Any, b: Any) -> None:
    assert distance({"!": [{one: [a, b]}]}) == distance({other: [a, b]})
    assert distance({"!": {"!": [{one: [a, b]}]}}) == distance({one: [a, b]})
    assert (distance({one: [a, b]}) == 0) != (distance({other: [a, b]}) == 0)


@pytest.mark.parametrize("joined", ["and", "or"])
def test_the_opposite_of_several_is_the_other_of_their_opposites(joined: str) -> None:
    other = {"and": "or", "or": "and"}[joined]
    parts = [{"<": [var("a"), 4]}, {">=": [var("a"), 8]}, {"!=": [var("a"), 5]}]
    opposites = [{"!": part} for part in parts]
    for a in (3, 5, 9):
        assert distance({"!": [{joined: parts}]}, {"a": 1}, a=a) == distance(
            {other: opposites},
            {"a": 1},
            a=a,
        )


def test_a_chain_is_all_of_its_pairs_and_its_opposite_one_of_theirs() -> None:
    chain = {"<": [1, var("a"), var("b"), 9]}
    pairs = [{"<": [1, var("a")]}, {"<": [var("a"), var("b")]}, {"<": [var("b"), 9]}]
    initial = {"a": 3, "b": 7}
    for a, b in ((2, 5), (5, 2), (0, 12), (4, 4)):
        assert distance(chain, initial, a=a, b=b) == distance({"and": pairs}, initial, a=a, b=b)
        opposites = {"or": [{"!": pair} for pair in pairs]}
        assert distance({"!": [chain]}, initial, a=a, b=b) == distance(opposites, initial, a=a, b=b)


def test_each_operand_has_the_fuel_of_an_evaluation() -> None:
    """Together they would need more than one evaluation may take."""
    long = {"+": [1] * 6_000}
    assert distance({"<": [long, long]}) == JUST_FAILED
    assert distance({"<": [{"cat": [long]}, long]}) == 1
    assert distance({"!=": [long, {"+": [long, 1]}]}) == 0
    many = [0] * 3_000
    assert distance({"===": [many, many]}) == 0
    assert distance({"<": [{"+": [1] * 12_000}, 0]}) == 1


@pytest.mark.parametrize(
    "logic",
    [HELD, NEAR, {"!": [FAR]}, {"and": [HELD, NEAR]}, {"or": [HELD, NEAR]}, {"<": [0, var("a"), 5]}],
)
@pytest.mark.parametrize("a", [0, 1, 4, 4.5, 5, 9])
def test_the_distance_is_nothing_exactly_where_the_condition_holds(logic: Any, a: float) -> None:
    holds = is_truthy(evaluate(floats(logic), root({"a": a})))
    assert (distance(logic, {"a": 5}, a=a) == 0) == holds
    assert 0 <= distance(logic, {"a": 5}, a=a) <= 1


WEIGHING = ("greedy", "cautious", "planner", "saboteur")
OUT = at_most("out", "state.a", 0)
# A condition at a constant maximal distance, so the choice depends only on the others.
FAR_CONDITION = {"id": "far", "when": {"==": ["x", "y"]}}


def inc(path: str, value: float | str) -> dict[str, Any]:
    return {"op": "inc", "path": path, "value": value}


def dec(path: str, value: float) -> dict[str, Any]:
    return {"op": "dec", "path": path, "value": value}


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value}


def at_least(name: str, path: str, limit: float) -> dict[str, Any]:
    return {"id": name, "when": {">=": [{"var": path}, limit]}}


def scenario(core: Backend, **parts: Any) -> Program:
    return program_on(core, document(**{"loss_conditions": [OUT, FAR_CONDITION], "horizon": 20, **parts}))


def taken(program: Program, persona: Any, **options: Any) -> dict[str, int]:
    """Return how often each action was chosen."""
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
    """A persona that knew the coming draws would expose itself only when no event follows."""
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
    program = scenario(core, loss_conditions=[FAR_CONDITION, {**FAR_CONDITION, "id": "b"}], horizon=4)
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
    """Effects due after the last turn are ignored."""
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
