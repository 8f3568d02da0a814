"""Solutions of a document, and the personas that play them or try everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine._reference.turn import list_trials
from support.engine.backends import backend_named, program_on
from support.engine.specs import action, at_most, event, spec

if TYPE_CHECKING:
    from peripety.engine import DryRunReport, Persona
    from peripety.engine.backend_protocol import Backend


WHO = {"who": {"type": "string", "enum": ["x", "y", "z"]}}


def asking(**parts: Any) -> dict[str, Any]:
    """Three questions, then one guess at what was dealt."""
    ready = {">=": [{"var": "state.b"}, 3]}
    right = {"==": [{"var": "params.who"}, {"var": "state.k"}]}
    document = spec(
        spec_version="1.1",
        state={"a": 20, "b": 0, "k": "x"},
        horizon=12,
        deal=[{"id": "k", "path": "state.k", "values": ["x", "y", "z"]}],
        actions=[
            action(
                "ask", [{"op": "inc", "path": "state.b", "value": 1}], params=WHO, preconditions={"!": ready}
            ),
            action(
                "guess",
                [{"op": "set", "path": "state.b", "value": "result"}],
                params=WHO,
                preconditions=ready,
                derives={"result": {"if": [right, 100, -5]}},
            ),
        ],
        loss_conditions=[
            {"id": "wrong", "when": {"<": [{"var": "state.b"}, 0]}},
            at_most("out", "state.a", 0),
        ],
        win_conditions=[{"id": "found", "when": {">": [{"var": "state.b"}, 50]}}],
        random_events=[event("drop", [{"op": "dec", "path": "state.a", "value": 3}])],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 1}},
    )
    return {**document, "solutions": [solution(value) for value in "xyz"], **parts}


def solution(value: str) -> dict[str, Any]:
    ask = {"action": "ask", "params": {"who": value}}
    guess = {"action": "guess", "params": {"who": value}, "otherwise": ask}
    return {"id": value, "when": {"==": [{"var": "state.k"}, value]}, "steps": [guess]}


def step(name: str, otherwise: Any = None, when: Any = None, **params: Any) -> dict[str, Any]:
    return {
        "action": name,
        **({} if when is None else {"when": when}),
        **({"params": params} if params else {}),
        **({"otherwise": otherwise} if otherwise else {}),
    }


def play(core: Backend, document: dict[str, Any], persona: Persona = "par", runs: int = 60) -> DryRunReport:
    assert engine.validate(json.dumps(document).encode()) == []
    program = program_on(core, json.dumps(document).encode())
    return program.dry_run(runs=runs, persona=persona, detail=True, paths=True)


def path(core: Backend, steps: list[Any], **parts: Any) -> tuple[str, ...]:
    """The actions of a run that follows some steps and is won in turn 6."""
    tick = {"op": "inc", "path": "state.b", "value": 1}
    late = {">=": [{"var": "state.b"}, 2]}
    document = spec(
        spec_version="1.1",
        state={"a": 0, "b": 0},
        horizon=6,
        actions=[action("one", [tick]), action("two", [tick]), action("late", [tick], preconditions=late)],
        win_conditions=[{"id": "w", "when": {">=": [{"var": "state.a"}, 6]}}],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": -1}},
        solutions=[{"id": "s", "steps": steps}],
        **parts,
    )
    report = play(core, document, runs=1)
    assert report.detail is not None
    return report.detail.win_paths[0][0]


def test_par_follows_the_solution_of_its_deal(core: Backend) -> None:
    report = play(core, asking())
    assert (report.won, report.lost) == (60, 0)
    assert report.detail is not None
    assert report.detail.win_paths == ((("ask", "ask", "ask", "guess"), 60),)


def test_par_without_a_fitting_solution_does_nothing(core: Backend) -> None:
    for document in (asking(solutions=[solution("x") | {"when": {"==": [1, 2]}}]), without_solutions()):
        report = play(core, document)
        assert report.detail is not None
        assert {use.taken for use in report.detail.actions.values()} == {0}
        assert report.detail.actions["ask"].legal > 0


def without_solutions() -> dict[str, Any]:
    return {key: value for key, value in asking().items() if key != "solutions"}


def test_a_condition_that_fails_does_not_hold(core: Backend) -> None:
    fails = {"<": [{"+": ["x", 1]}, 1]}
    document = asking(solutions=[solution("x") | {"when": fails}, *(solution(value) for value in "yz")])
    report = play(core, document, runs=90)
    assert 0 < report.won < 90


def test_several_fitting_solutions_are_drawn_by_the_seed(core: Backend) -> None:
    steps = [[step("one")], [step("two")]]
    document = {**asking(), "solutions": [{"id": "p", "steps": steps[0]}, {"id": "q", "steps": steps[1]}]}
    document["actions"] = [action("one"), action("two")]
    taken = play(core, document).detail
    assert taken is not None
    assert all(use.taken > 60 for use in taken.actions.values())


def test_a_solution_begins_again_after_its_last_step(core: Backend) -> None:
    assert path(core, [step("one"), step("two")]) == ("one", "two") * 3


def test_a_step_waits_by_default(core: Backend) -> None:
    assert path(core, [step("late"), step("one")]) == ()
    assert path(core, [step("late", "wait"), step("one")]) == ()


def test_a_step_may_be_skipped(core: Backend) -> None:
    assert path(core, [step("late", "skip"), step("one")])[:4] == ("one", "one", "late", "one")


def test_a_step_may_be_preceded_by_another_action(core: Backend) -> None:
    assert path(core, [step("late", step("two")), step("one")])[:4] == ("two", "two", "late", "one")


def test_another_action_that_is_not_legal_is_a_wait(core: Backend) -> None:
    assert path(core, [step("late", step("late"))]) == ()


EARLY: dict[str, Any] = {"<": [{"var": "state.b"}, 2]}
NEVER: dict[str, Any] = {"<": [{"+": ["x", 1]}, 1]}


@pytest.mark.parametrize(
    ("steps", "taken"),
    [
        ([step("one", when=EARLY), step("two")], ("one", "two", "two", "two", "two", "two")),
        ([step("one", "skip", when=EARLY), step("two")], ("one", "two", "two", "two", "two", "two")),
        ([step("one", "wait", when=EARLY), step("two")], ("one", "two")),
        ([step("one", step("two"), when={"!": [EARLY]})], ("two", "two", "one", "one", "one", "one")),
        ([step("late", when=EARLY), step("one")], ()),
        ([step("late", "skip", when=EARLY), step("one")], ("one",) * 6),
        ([step("one", when=NEVER), step("two", when={})], ("two",) * 6),
        ([step("one", when=NEVER)], ()),
        ([step("late", "skip"), step("one", when={"==": [{"var": "turn"}, 2]}), step("two", when=EARLY)],
         ("two", "one", "late", "late", "late", "late")),
    ],
)  # fmt: skip
def test_a_step_with_a_condition_is_left_out_while_it_does_not_hold(
    core: Backend, steps: list[Any], taken: tuple[str, ...]
) -> None:
    assert path(core, steps) == taken


def reading(**when: Any) -> dict[str, Any]:
    """A guess at what was dealt, with a clue about it, and one solution for all deals."""
    is_right = {"==": [{"var": "params.who"}, {"var": "state.hidden.k"}]}
    texts = {value: f"It is {value}." for value in "xyz"}
    guesses = [
        {**step("guess", who=value), "when": {"==": [{"var": "state.clues.told"}, text]}}
        for value, text in texts.items()
    ]
    return spec(
        spec_version="1.1",
        state={"score": 0, "hidden": {"k": "x"}},
        horizon=8,
        deal=[{"id": "k", "path": "state.hidden.k", "values": [*texts]}],
        clues={"told": {"text": {"deal": "k", "texts": texts}}},
        actions=[
            action("look", [{"op": "reveal", "clue": "told"}]),
            action(
                "guess",
                [{"op": "set", "path": "state.score", "value": "score"}],
                params=WHO,
                derives={"score": {"if": [is_right, 1, -1]}},
            ),
        ],
        loss_conditions=[at_most("wrong", "state.score", -1), at_most("never", "state.score", -2)],
        win_conditions=[{"id": "right", "when": {"==": [{"var": "state.score"}, 1]}}],
        solutions=[
            {
                "id": "reader",
                "steps": [{**step("look"), "when": {"!": [{"known": "told"}]}, **when}, *guesses],
            }
        ],
    )


def test_one_solution_is_for_all_deals_by_what_a_clue_reveals(core: Backend) -> None:
    report = play(core, reading(), runs=90)
    assert (report.won, report.lost) == (90, 0)
    assert report.detail is not None
    assert report.detail.win_paths == ((("look", "guess"), 90),)


@pytest.mark.parametrize(
    ("when", "found"),
    [
        ({"known": "zz"}, [("UNKNOWN_CLUE", "/when/known")]),
        ({"==": [{"var": "state.zz"}, 1]}, [("UNKNOWN_PATH", "/when/==/0/var")]),
        ({"==": [{"var": "state.hidden.k"}, "x"]}, [("HIDDEN_IN_STEP", "/when")]),
        ({"!!": [{"var": "state.hidden"}]}, [("HIDDEN_IN_STEP", "/when")]),
        ({"missing": ["state.hidden.k"]}, [("HIDDEN_IN_STEP", "/when")]),
        ({"==": [{"var": "state.score"}, 0]}, []),
        ({}, []),
    ],
)
def test_the_condition_of_a_step_is_checked(when: dict[str, Any], found: list[tuple[str, str]]) -> None:
    findings = engine.validate(json.dumps(reading(when=when)).encode())
    assert [(one.code, one.path.removeprefix("/solutions/0/steps/0")) for one in findings] == found


def test_steps_that_are_all_skipped_are_a_wait(core: Backend) -> None:
    assert path(core, [step("late", "skip"), step("late", "skip")]) == ()


def test_curious_does_everything_once_and_the_least_used_next(core: Backend) -> None:
    actions = [action("a", params=WHO), action("b"), action("c", preconditions={"==": [1, 2]})]
    document = {**asking(actions=actions, horizon=8), "solutions": [{"id": "s", "steps": [step("b")]}]}
    for horizon in (4, 8):
        document["horizon"] = horizon
        report = play(core, {**document, "loss_conditions": losses()}, "curious", runs=20)
        assert report.detail is not None
        taken = {name: use.taken for name, use in report.detail.actions.items()}
        assert taken == {"a": 20 * 3 * horizon // 4, "b": 20 * horizon // 4, "c": 0}


def losses() -> list[dict[str, Any]]:
    return [{"id": name, "when": {"==": [1, 2]}} for name in ("first", "second")]


def test_curious_wins_a_third_of_a_guess_among_three(core: Backend) -> None:
    report = play(core, asking(), "curious", runs=200)
    assert 0.25 < report.won / report.runs < 0.45


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({}, 1),
        (WHO, 3),
        ({**WHO, "yes": {"type": "boolean"}}, 6),
        ({"n": {"type": "integer", "minimum": -1.0, "maximum": 14.0}}, 16),
        ({"n": {"type": "integer", "minimum": -1.0, "maximum": 15.0}}, 1),
        ({"n": {"type": "number", "minimum": 0.0, "maximum": 1.0}}, 1),
        ({"text": {"type": "string", "maxLength": 3.0}}, 1),
        ({"n": {"type": "integer", "enum": [1.0, 2.0, 1.0]}}, 2),
        ({name: {"type": "integer", "minimum": 0.0, "maximum": 7.0} for name in "abc"}, 64),
    ],
)
def test_trials_are_the_values_of_parameters_with_few_values(params: dict[str, Any], count: int) -> None:
    assert len(list_trials(params)) == count


@pytest.mark.slow_after(1, reason="plays a thousand runs on both cores")
@pytest.mark.parametrize("persona", engine.PERSONAS)
def test_both_cores_report_the_same(persona: Persona) -> None:
    document = json.dumps(asking()).encode()
    reports = [
        program_on(backend_named(name), document).dry_run(
            runs=150, persona=persona, digest=True, detail=True, paths=True
        )
        for name in ("python", "native")
    ]
    assert reports[0] == reports[1]


def test_win_paths_are_collected_on_request_only(core: Backend) -> None:
    program = program_on(core, json.dumps(asking()).encode())
    plain = program.dry_run(runs=80, persona="random", detail=True)
    told = program.dry_run(runs=80, persona="random", detail=True, paths=True)
    assert plain.detail is not None
    assert told.detail is not None
    assert plain.detail.win_paths == ()
    assert sum(count for _, count in told.detail.win_paths) == told.won == plain.won
    assert told.merge(told).detail.win_paths[0][1] == 2 * told.detail.win_paths[0][1]  # type: ignore[union-attr]


def test_solutions_are_part_of_the_hash_and_of_no_rule(core: Backend) -> None:
    one, other = (program_on(core, json.dumps(d).encode()) for d in (asking(), without_solutions()))
    assert one.spec_hash != other.spec_hash
    assert one.dry_run(runs=50, digest=True) == other.dry_run(runs=50, digest=True)
    assert one.new_state().to_json() == other.new_state().to_json()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"action": "zz"}, [("UNKNOWN_ACTION", "/solutions/0/steps/0/action")]),
        ({"params": {"who": "p"}}, [("BAD_STEP", "/solutions/0/steps/0/params")]),
        ({"params": {}}, [("BAD_STEP", "/solutions/0/steps/0/params")]),
        ({"params": {"who": "x", "n": 1}}, [("BAD_STEP", "/solutions/0/steps/0/params")]),
        ({"otherwise": {"action": "ask"}}, [("BAD_STEP", "/solutions/0/steps/0/otherwise/params")]),
        ({"otherwise": {"action": "zz"}}, [("UNKNOWN_ACTION", "/solutions/0/steps/0/otherwise/action")]),
        ({"otherwise": "stop"}, None),
    ],
)
def test_a_wrong_step_is_a_finding(change: dict[str, Any], found: list[tuple[str, str]] | None) -> None:
    wrong = solution("x")
    wrong["steps"] = [{**wrong["steps"][0], **change}]
    findings = engine.validate(json.dumps(asking(solutions=[wrong])).encode())
    if found is None:
        assert findings
    else:
        assert [(finding.code, finding.path) for finding in findings] == found


def test_the_condition_of_a_solution_is_checked() -> None:
    wrong = solution("x") | {"when": {"==": [{"var": "state.zz"}, 1]}}
    findings = engine.validate(json.dumps(asking(solutions=[wrong, solution("x")])).encode())
    assert [(finding.code, finding.path) for finding in findings] == [
        ("DUPLICATE_ID", "/solutions/1/id"),
        ("UNKNOWN_PATH", "/solutions/0/when/==/0/var"),
    ]


def test_version_1_0_has_no_solutions() -> None:
    document = {**spec(), "solutions": [{"id": "s", "steps": [{"action": "act"}]}]}
    assert [finding.code for finding in engine.validate(json.dumps(document).encode())] == ["UNKNOWN_KEY"]
