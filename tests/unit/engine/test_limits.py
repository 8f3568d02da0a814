"""Every limit of the engine that an untrusted scenario can meet, at its edge, on both cores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine.backend_protocol import EngineError
from peripety.errors import InvalidArgumentError, ResourceExhaustedError
from support.engine.backends import program_on
from support.engine.specs import action, document, event

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine import Program, State
    from peripety.engine.backend_protocol import Backend


Effects = list[dict[str, Any]]

# Over 9,000 steps each, under 10,000.
COSTLY: dict[str, Any] = {"all": [[1] * 68, {"all": [[1] * 66, 1]}]}

# With it the first turn draws a number below 0.3.
SEED_OF_AN_EVENT = next(seed for seed in range(99) if engine.draw(seed, "event", 1, 0) < 0.3 * 2**64)


def put(value: Any, path: str = "state.a") -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value}


def later(effects: Effects, name: str = "x") -> dict[str, Any]:
    return {"op": "schedule", "id": name, "after": 1, "effects": effects}


def refusal(work: Callable[[], Any]) -> ResourceExhaustedError:
    with pytest.raises(ResourceExhaustedError) as refused:
        work()
    return refused.value


def started(core: Backend, effects: Effects, **parts: Any) -> tuple[Program, State]:
    """A program with one action of these effects, and its initial state."""
    program = program_on(core, document(actions=[action("act", effects)], **parts))
    return program, program.new_state()


# --- documents ---


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"actions": [action(f"a{n}") for n in range(513)]}, "/actions"),
        ({"random_events": [event(f"e{n}") for n in range(513)]}, "/random_events"),
        ({"actions": [action("a", [put(1)] * 4096), action("b", [put(1)])]}, ""),
        ({"state": {"a": 1, "list": [0] * 9998}}, "/state"),
    ],
    ids=["actions", "events", "effects", "values"],
)
def test_a_document_over_a_limit_is_refused(parts: dict[str, Any], place: str) -> None:
    assert [finding.path for finding in engine.validate(document(**parts))] == [place]


@pytest.mark.parametrize(
    "parts",
    [
        {"actions": [action(f"a{n}") for n in range(512)]},
        {"random_events": [event(f"e{n}") for n in range(512)]},
        {"actions": [action("a", [put(1)] * 4095), action("b", [put(1)])]},
        {"state": {"a": 1, "list": [0] * 9997}},
    ],
    ids=["actions", "events", "effects", "values"],
)
def test_a_document_at_a_limit_is_accepted(parts: dict[str, Any]) -> None:
    assert engine.validate(document(**parts)) == []


# --- the state ---


LONG: Effects = [{"op": "push", "path": "state.list", "value": "long"}]


@pytest.mark.parametrize(
    ("effects", "over", "problem"),
    [
        ([put([0] * 9997)], [put([0] * 9998)], "the state has more than 10000 values"),
        ([put("edge")], [put("over")], "a string is longer than 65536 bytes"),
        (
            [*(LONG * 17), put("x" * 28_571)],
            [*(LONG * 17), put("x" * 28_572)],
            "the state holds more than 1048576 bytes of text",
        ),
        ([later([put([0] * 9989)])], [later([put([0] * 9990)])], "the state has more than 10000 values"),
    ],
    ids=["values", "string", "text", "pending values"],
)
def test_a_state_may_reach_its_limits_and_not_pass_them(
    core: Backend,
    effects: Effects,
    over: Effects,
    problem: str,
) -> None:
    derives = {
        "edge": {"cat": ["é" * 30_000, "é" * 2768]},
        "over": {"cat": ["é" * 30_000, "é" * 2768, "x"]},
        "long": {"cat": ["x" * 30_000, "x" * 30_000]},
    }
    for tried, refused in ((effects, None), (over, problem)):
        actions = [action("act", tried, derives=derives)]
        program = program_on(core, document(state={"a": 0, "list": []}, actions=actions))
        run = program.new_state()
        before = run.to_json()
        if refused is None:
            assert program.act(run, "act").accepted
        else:
            error = refusal(lambda: program.act(run, "act"))  # noqa: B023 - called at once
            assert (error.code, error.details) == ("STATE_LIMIT", {"path": "/actions/0/effects"})
            assert error.message == refused
            assert run.to_json() == before


@pytest.mark.parametrize("kept", [9990, 9970])
def test_what_is_taken_away_makes_room_again(core: Backend, kept: int) -> None:
    full = [0] * 9990
    effects = [put(full), put(0), put(full, "state.b"), {"op": "pop", "path": "state.b"}, put(0, "state.b")]
    program, run = started(core, [*effects, put(full[:kept]), later([put(1)])], state={"a": 0, "b": 0})
    if kept == len(full):
        assert refusal(lambda: program.act(run, "act")).code == "STATE_LIMIT"
        return
    assert program.act(run, "act").accepted
    # The entry that comes due leaves, and what it writes takes less room than what was there.
    program.step(run)
    program.step(run)
    assert run.tree() == {"a": 1, "b": 0}
    assert json.loads(run.to_json())["scheduled"] == []


def test_a_value_too_large_fails_the_list_that_writes_it_even_when_it_does_not_stay(core: Backend) -> None:
    long = {"cat": ["é" * 30_000, "é" * 30_000]}
    actions = [action("act", [put("long"), put(0)], derives={"long": long})]
    program = program_on(core, document(actions=actions))
    run = program.new_state()
    assert refusal(lambda: program.act(run, "act")).code == "STATE_LIMIT"


def test_at_most_256_entries_are_pending(core: Backend) -> None:
    program, run = started(core, [later([], f"s{n}") for n in range(256)])
    assert program.act(run, "act").accepted
    assert program.act(run, "act").accepted, "the same ids replace their entries"
    program, run = started(core, [later([], f"s{n}") for n in range(257)])
    assert "more than 256 scheduled entries" in refusal(lambda: program.act(run, "act")).message


def test_a_snapshot_of_a_state_beyond_its_limits_is_refused(core: Backend) -> None:
    program, run = started(core, [])
    snapshot = json.loads(run.to_json())
    entry = {"id": "s", "due": 1, "effects": []}
    line = {"turn": 1, "message": "m", "cause": "action:act"}
    deep: Any = 0
    for _ in range(64):
        deep = [deep]
    beyond: list[dict[str, Any]] = [
        {"state": {"a": [0] * 9999}},
        {"state": {"a": deep}},
        {"state": {"a": ["x" * 60_000] * 18}},
        {"scheduled": [{**entry, "effects": [put([0] * 9999)]}]},
        {"scheduled": [{**entry, "id": f"s{n}"} for n in range(257)]},
        {"log": [line] * 257},
    ]
    for parts in beyond:
        with pytest.raises(InvalidArgumentError) as refused:
            program.load_state(json.dumps({**snapshot, **parts}).encode("utf-8"))
        assert refused.value.code == "SNAPSHOT_INVALID"
    within = {"state": {"a": [0] * 9998}, "log": [line] * 256}
    assert program.load_state(json.dumps({**snapshot, **within}).encode("utf-8")).tree() == within["state"]


def test_a_restored_state_has_the_room_that_was_left(core: Backend) -> None:
    program, run = started(core, [put([0] * 5000), later([put([0] * 4900)])], state={"a": 0})
    program.act(run, "act")
    restored = program.load_state(run.to_json())
    program.step(restored)
    assert program.step(restored).changes[0].after == [0] * 4900
    program, run = started(
        core,
        [{"op": "push", "path": "state.list", "value": [0] * 2000}],
        state={"list": []},
    )
    accepted = 0
    while accepted < 4:
        program.act(run, "act")
        run = program.load_state(run.to_json())
        accepted += 1
    assert refusal(lambda: program.act(run, "act")).code == "STATE_LIMIT"


# --- a call ---


ZEROS: dict[str, Any] = {"zeros": {"var": "state.zeros"}}
# Two changes that take 4,003 steps each.
PAIR: Effects = [put("zeros"), put(0)]


def spender(core: Backend, effects: Effects) -> tuple[Program, State]:
    """A program with an action that takes 96,325 steps, and then those of more effects."""
    actions = [action("act", [*(PAIR * 12), *effects], derives=ZEROS)]
    program = program_on(core, document(state={"a": 0, "zeros": [0] * 4000}, actions=actions))
    return program, program.new_state()


def test_a_call_may_take_all_of_its_steps_and_not_one_more(core: Backend) -> None:
    program, run = spender(core, [put([0] * 3672)])
    assert program.act(run, "act").accepted
    program, run = spender(core, [put([0] * 3673)])
    before = run.to_json()
    error = refusal(lambda: program.act(run, "act"))
    assert (error.code, error.message) == ("TURN_LIMIT", "the call takes more than 100000 steps")
    assert error.details == {"path": "/actions/0/effects"}
    assert run.to_json() == before


@pytest.mark.parametrize(("last", "code"), [(3533, None), (3534, "TURN_LIMIT")])
def test_text_is_paid_by_the_kibibyte(core: Backend, last: int, code: str | None) -> None:
    # Two changes of 3 + 63 steps, for the text after or before; one of 5 whose text is too short to count.
    program, run = spender(core, [put("x" * 65_535), put(0), put(["x" * 1022, "y"]), put([0] * last)])
    if code is None:
        assert program.act(run, "act").accepted
    else:
        assert refusal(lambda: program.act(run, "act")).code == code


def test_scheduling_is_paid_like_a_change(core: Backend) -> None:
    for times in (24, 25):
        actions = [action("act", [later([put("zeros")])] * times, derives=ZEROS)]
        program = program_on(core, document(state={"a": 0, "zeros": [0] * 4000}, actions=actions))
        run = program.new_state()
        if times == 24:
            assert program.act(run, "act").accepted
        else:
            error = refusal(lambda: program.act(run, "act"))  # noqa: B023 - called at once
            assert (error.code, error.details) == ("TURN_LIMIT", {"path": "/actions/0/effects"})


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"random_events": [event(f"e{n}", when=COSTLY) for n in range(11)]}, "/random_events/10/when"),
        (
            {"loss_conditions": [{"id": f"l{n}", "when": {"!": COSTLY}} for n in range(11)]},
            "/loss_conditions/10/when",
        ),
        (
            {"random_events": [event("e", derives={f"d{n:02}": COSTLY for n in range(11)})]},
            "/random_events/0/derives",
        ),
    ],
    ids=["when", "conditions", "derives"],
)
def test_conditions_and_derived_values_are_paid_by_the_call(
    core: Backend,
    parts: dict[str, Any],
    place: str,
) -> None:
    program = program_on(core, document(**parts))
    run = program.new_state(SEED_OF_AN_EVENT)
    before = run.to_json()
    error = refusal(lambda: program.step(run))
    assert (error.code, error.details) == ("TURN_LIMIT", {"path": place})
    assert run.to_json() == before


def test_finding_the_legal_actions_is_a_call_like_any_other(core: Backend) -> None:
    few = [action(f"a{n}", preconditions=COSTLY) for n in range(10)]
    program = program_on(core, document(actions=few))
    assert len(program.legal_actions(program.new_state())) == 10
    program = program_on(core, document(actions=[*few, action("b", preconditions=COSTLY)]))
    assert refusal(lambda: program.legal_actions(program.new_state())).code == "TURN_LIMIT"


def test_what_opening_the_turn_takes_is_paid_by_finding_the_legal_actions(core: Backend) -> None:
    actions = [action("act", [later(PAIR * 2)], derives=ZEROS)]
    actions += [action(f"a{n}", preconditions=COSTLY) for n in range(10)]
    program = program_on(core, document(state={"a": 0, "zeros": [0] * 2300}, actions=actions))
    run = program.new_state()
    program.act(run, "act")
    program.step(run)
    assert refusal(lambda: program.legal_actions(run)).code == "TURN_LIMIT"
    assert program.act(run, "a0").accepted


def test_rules_that_fail_are_paid_as_well(core: Backend) -> None:
    failing = {"+": [COSTLY, "x"]}
    program = program_on(core, document(random_events=[event(f"e{n}", when=failing) for n in range(11)]))
    run = program.new_state()
    assert refusal(lambda: program.step(run)).code == "TURN_LIMIT"


def test_changes_that_a_failing_rule_takes_back_are_paid_as_well(core: Backend) -> None:
    parts = {
        "state": {"a": 0, "zeros": [0] * 4000},
        "random_events": [
            event("e", [*(PAIR * 8), {"op": "pop", "path": "state.a"}], derives=ZEROS),
        ],
        "loss_conditions": [{"id": f"l{n}", "when": {"!": COSTLY}} for n in range(4)],
    }
    program = program_on(core, document(**parts))
    run = program.new_state(SEED_OF_AN_EVENT)
    error = refusal(lambda: program.step(run))
    assert (error.code, error.details) == ("TURN_LIMIT", {"path": "/loss_conditions/3/when"})


def test_a_run_that_meets_the_limit_of_a_call_counts_as_errored(core: Backend) -> None:
    program, _ = spender(core, [put([0] * 3673)])
    report = program.dry_run(runs=3)
    assert (report.errored, report.turns) == (3, 0)
    assert report.errors == (
        engine.RuleError("TURN_LIMIT", "/actions/0/effects", "the call takes more than 100000 steps", 3),
    )


def test_an_expression_has_fuel_and_an_output_of_its_own(core: Backend) -> None:
    endless = {"d": {"map": [[1] * 100, {"map": [[1] * 100, 1]}]}}
    wide = {
        "a": [0] * 100,
        "b": {"merge": [{"var": "derives.a"}] * 100},
        "c": {"merge": [{"var": "derives.b"}] * 7},
    }
    for derives, problem in (
        (endless, "more than 10000 steps"),
        (wide, "more than 65536 characters or items"),
    ):
        program = program_on(core, document(actions=[action("act", [], derives=derives)]))
        (reason,) = program.act(program.new_state(), "act").reasons
        assert reason.code == "FUEL_EXHAUSTED"
        assert problem in reason.message


@pytest.mark.parametrize(
    ("condition", "at_most"),
    [
        # 5 steps of fuel and 250 for 4,000 items made, 2 and 250 for values looked at, 6 and 250 for text.
        ({"!": {"merge": [{"var": "state.zeros"}, []]}}, 392),
        ({"var": "state.zeros"}, 396),
        ({"==": [{"cat": [{"var": "state.text"}, ""]}, ""]}, 390),
        # 5 steps and 62 for the characters of the path.
        ({"!": {"missing": [{"var": "state.text"}]}}, 1492),
    ],
    ids=["made", "looked at", "text", "paths"],
)
def test_work_without_fuel_is_paid_by_the_call(core: Backend, condition: Any, at_most: int) -> None:
    state = {"zeros": [0] * 4000, "text": "a." * 2000}
    for number, code in ((at_most, None), (at_most + 1, "TURN_LIMIT")):
        events = [event(f"e{n}", when=condition) for n in range(number)]
        losses = [{"id": f"l{n}", "when": {"<": [1, 0]}} for n in range(2)]
        program = program_on(core, document(state=state, random_events=events, loss_conditions=losses))
        run = program.new_state(SEED_OF_AN_EVENT)
        if code is None:
            program.step(run)
        else:
            assert refusal(lambda: program.step(run)).code == code  # noqa: B023 - called at once


# --- memory ---


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096


def test_forks_share_what_they_do_not_write(core: Backend) -> None:
    tree: Any = 1
    for _ in range(3):
        tree = {f"k{n}": tree for n in range(20)}
    effect = {"op": "inc", "path": "state.k7.k7.k7", "value": 1}
    program, run = started(core, [effect], state=tree)
    before = resident_bytes()
    forks = [run.fork() for _ in range(10_000)]
    assert resident_bytes() - before < 20e6
    for fork in forks:
        program.act(fork, "act")
    # A copy of the whole tree would take some 500 KB each.
    assert resident_bytes() - before < 150e6
    assert forks[0].tree()["k7"]["k7"]["k7"] == 2
    assert run.tree()["k7"]["k7"]["k7"] == 1


def test_a_fork_never_sees_what_another_writes(core: Backend) -> None:
    effects: Effects = [
        {"op": "push", "path": "state.list", "value": {"n": []}},
        {"op": "push", "path": "state.list[2].n", "value": 1},
        {"op": "patch", "path": "state.tree", "value": {"y": 2}},
        {"op": "addlog", "message": "m"},
        later([put(1)]),
    ]
    program, run = started(core, effects)
    start = run.to_json()
    forks = [run.fork() for _ in range(3)]
    program.act(forks[0], "act")
    program.act(forks[1], "act")
    program.step(forks[1])
    assert run.to_json() == forks[2].to_json() == start
    assert forks[0].tree() == forks[1].tree()
    with pytest.raises(EngineError):
        core.parse(b"")
