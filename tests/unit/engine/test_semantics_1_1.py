"""Version 1.1: bounds, deals, the order of a turn, texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine.rng import choose, draw, run_seed, stream_key
from support.engine.backends import backend_named, compiled_report, interpreted_report, program_on
from support.engine.specs import action, at_most, event, never, spec

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend
    from peripety.engine.types import Persona


Json = dict[str, Any]


def later(**parts: Any) -> Json:
    return spec(**{"spec_version": "1.1", **parts})


def on(core: Backend, **parts: Any) -> Program:
    return program_on(core, json.dumps(later(**parts)).encode("utf-8"))


def codes(document: Json) -> list[tuple[str, str]]:
    found = engine.validate(json.dumps(document))
    return [(finding.code, finding.path) for finding in found]


def effect(op: str, value: Any, path: str = "state.a") -> Json:
    return {"op": op, "path": path, "value": value}


BOUNDS = {"state.a": {"min": 0, "max": 12}}
DEAL = {"id": "x", "path": "state.note", "values": ["p", "q", "r"]}
ENDS = [at_most("out", "state.a", 0), never("b")]


# --- versions ---


@pytest.mark.parametrize("key", ["bounds", "deal", "premise", "opening", "epilogues", "labels"])
def test_a_document_of_1_0_knows_none_of_the_keys(key: str) -> None:
    assert codes(spec(**{key: "x"})) == [("UNKNOWN_KEY", f"/{key}")]


def test_a_document_of_1_1_needs_none_of_the_keys() -> None:
    assert codes(later()) == []


# --- bounds ---


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (effect("inc", 5), 12),
        (effect("dec", 50), 0),
        (effect("mul", -1), 0),
        (effect("set", 12.5), 12),
        (effect("set", 3), 3),
        (effect("patch", {"a": 99, "b": 99}, "state"), 12),
    ],
)
def test_a_write_stores_what_the_bounds_leave(core: Backend, written: Json, stored: float) -> None:
    program = on(core, bounds=BOUNDS, actions=[action("act", [written])])
    state = program.new_state()
    result = program.act(state, "act")
    assert result.changes[0].after == state.tree()["a"] == stored


def test_events_schedules_decay_and_the_narrator_are_bounded_as_well(core: Backend) -> None:
    soon = {"op": "schedule", "id": "s", "after": 1, "effects": [effect("inc", 50)]}
    program = on(
        core,
        bounds=BOUNDS,
        actions=[action("act", [soon]), action("more", [effect("inc", 90)])],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 30}},
    )
    state = program.new_state()
    program.act(state, "act")
    assert program.step(state).changes[-1].after == 0
    assert program.narrate(state, [effect("inc", 90)]).changes[-1].after == 12


def test_a_result_that_is_not_finite_fails_before_the_bounds(core: Backend) -> None:
    program = on(core, bounds=BOUNDS, actions=[action("act", [effect("mul", 1e308)])])
    (reason,) = program.act(program.new_state(), "act").reasons
    assert (reason.code, reason.rule) == ("NUMERIC_RANGE", "/actions/0/effects/0")


@pytest.mark.parametrize("written", [effect("set", "d"), effect("patch", "d", "state")])
def test_a_derived_value_that_does_not_fit_fails(core: Backend, written: Json) -> None:
    value = {"var": "state.note"} if written["op"] == "set" else {"var": "state.holder"}
    program = on(
        core,
        state={"a": 10, "b": 2, "note": "n", "holder": {"a": "x"}},
        bounds=BOUNDS,
        actions=[action("act", [written], derives={"d": value})],
    )
    (reason,) = program.act(program.new_state(), "act").reasons
    assert reason.code == "TYPE_MISMATCH"


@pytest.mark.parametrize(
    ("change", "is_accepted"),
    [
        (effect("set", 3), True),
        (effect("set", "x"), False),
        (effect("patch", {"a": None}, "state"), False),
        (effect("set", {"x": 1}, "state.tree"), False),
        (effect("patch", {"tree": {}}, "state"), False),
    ],
)
def test_the_narrator_cannot_replace_a_bounded_number(core: Backend, change: Json, is_accepted: bool) -> None:
    scope = [{"path": "state", "ops": ["set", "patch"]}]
    program = on(core, bounds={**BOUNDS, "state.tree.x": {"min": 0}}, narrator_scope=scope)
    result = program.narrate(program.new_state(), [change])
    assert [reason.code for reason in result.reasons] == ([] if is_accepted else ["CHANGE_INVALID"])


@pytest.mark.parametrize(
    ("bounds", "code"),
    [
        ({"state.a": {}}, "BAD_BOUNDS"),
        ({"state.a": {"min": 20, "max": 11}}, "BAD_BOUNDS"),
        ({"state.a": {"min": 11}}, "BAD_BOUNDS"),
        ({"state.zz": {"min": 0}}, "UNKNOWN_PATH"),
        ({"state.list[0]": {"min": 0}}, "UNKNOWN_PATH"),
        ({"state.note": {"min": 0}}, "TYPE_MISMATCH"),
        ({"state.flag": {"min": 0}}, "TYPE_MISMATCH"),
        ({"a": {"min": 0}}, "BAD_PATH"),
    ],
)
def test_bounds_belong_to_a_number_of_the_initial_state(bounds: Json, code: str) -> None:
    (place,) = bounds
    assert (code, f"/bounds/{place}") in codes(later(bounds=bounds))


@pytest.mark.parametrize(
    "written",
    [
        effect("set", "x"),
        effect("patch", {"a": "x"}, "state"),
        effect("set", {"x": 1}, "state.tree"),
        effect("patch", {"tree": {"x": 1}}, "state"),
    ],
)
def test_an_effect_that_replaces_a_bounded_number_is_a_finding(written: Json) -> None:
    bounds = {**BOUNDS, "state.tree.x": {"min": 0}}
    document = later(bounds=bounds, actions=[action("act", [written])])
    assert codes(document) == [("TYPE_MISMATCH", "/actions/0/effects/0")]


# --- deals ---


@pytest.mark.parametrize("seed", [0, 1, 7, 2**64 - 1])
def test_a_truth_is_dealt_by_the_seed_at_turn_0(core: Backend, seed: int) -> None:
    program = on(core, deal=[DEAL])
    drawn = choose(draw(seed, stream_key("deal:x"), 0, 0), 3)
    assert program.new_state(seed).tree()["note"] == DEAL["values"][drawn]


def test_each_run_deals_by_its_own_seed(core: Backend) -> None:
    win = {"id": "w", "when": {"==": [{"var": "state.note"}, "q"]}}
    program = on(core, deal=[DEAL], win_conditions=[win])
    drawn = [choose(draw(run_seed(7, run), stream_key("deal:x"), 0, 0), 3) for run in range(300)]
    assert program.dry_run(runs=300, persona="idle").wins == {"w": drawn.count(1)}


def test_futures_deal_nothing(core: Backend) -> None:
    win = {"id": "w", "when": {"==": [{"var": "state.note"}, "q"]}}
    program = on(core, deal=[DEAL], win_conditions=[win])
    states = [program.new_state(seed) for seed in range(9)]
    wins = [program.simulate_from(state, runs=5, seed=3, horizon=4).won for state in states]
    assert wins == [5 if state.tree()["note"] == "q" else 0 for state in states]
    assert set(wins) == {0, 5}


def test_what_is_watched_starts_after_the_deal(core: Backend) -> None:
    deal = {"id": "x", "path": "state.a", "values": [20, 30]}
    program = on(core, deal=[deal], actions=[action("act", [effect("inc", 1)])], horizon=3)
    report = program.dry_run(runs=100, persona="random", detail=True, watch={"state.a": 1.0})
    assert report.detail is not None
    assert report.detail.moves["state.a"] == 300 * 2**20


def test_a_dealt_number_is_bounded(core: Backend) -> None:
    deal = {"id": "x", "path": "state.a", "values": [-20, 30]}
    program = on(core, deal=[deal], bounds=BOUNDS)
    assert {program.new_state(seed).tree()["a"] for seed in range(20)} == {0, 12}


@pytest.mark.parametrize(
    ("deals", "found"),
    [
        ([{**DEAL, "path": "state.zz"}], ("UNKNOWN_PATH", "/deal/0/path")),
        ([{**DEAL, "path": "state"}], ("BAD_PATH", "/deal/0/path")),
        ([DEAL, {**DEAL, "id": "y"}], ("BAD_DEAL", "/deal/1/path")),
        ([DEAL, {**DEAL, "path": "state.b"}], ("DUPLICATE_ID", "/deal/1/id")),
        ([{**DEAL, "path": "state.a"}], ("TYPE_MISMATCH", "/deal/0/values/0")),
        ([{**DEAL, "values": ["x", "{{y}}"]}], ("CODE_IN_VALUE", "/deal/0/values/1")),
    ],
)
def test_a_deal_names_its_own_path_and_literals(deals: list[Json], found: tuple[str, str]) -> None:
    assert found in codes(later(deal=deals, bounds=BOUNDS))


def test_a_proof_holds_for_every_deal(core: Backend) -> None:
    deal = {"id": "x", "path": "state.note", "values": ["p", "q"]}
    wins = [{"id": w, "when": {"==": [{"var": "state.note"}, w]}} for w in ("n", "p", "q")]
    proofs = on(core, deal=[deal], win_conditions=wins, loss_conditions=ENDS).prove(5)
    unreachable = [proof.path for proof in proofs if proof.code == "UNREACHABLE_WIN"]
    assert unreachable == ["/win_conditions/0"]


# --- the order of a turn ---


def test_a_run_that_ends_by_an_action_has_no_event_and_no_decay(core: Backend) -> None:
    parts: Json = {
        "actions": [action("act", [effect("set", 0)])],
        "random_events": [event(f"e{n}", [effect("inc", 5)], weight=0.3) for n in range(4)],
        "loss_conditions": ENDS,
        "negativity_budget": {"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 1}},
    }
    program = on(core, **parts)
    state = program.new_state()
    program.act(state, "act")
    result = program.step(state)
    assert (result.event, result.changes, result.draws) == (None, (), ())
    assert (state.status.condition, state.turn) == ("out", 1)
    earlier = program_on(core, json.dumps(spec(**parts)).encode("utf-8"))
    state = earlier.new_state()
    earlier.act(state, "act")
    assert earlier.step(state).event is not None
    assert state.status.kind == "ongoing"


def test_a_loss_comes_before_a_win(core: Backend) -> None:
    win = {"id": "w", "when": {}}
    program = on(
        core, actions=[action("act", [effect("set", 0)])], loss_conditions=ENDS, win_conditions=[win]
    )
    state = program.new_state()
    program.act(state, "act")
    program.step(state)
    assert state.status.condition == "out"


def test_proofs_know_that_an_event_cannot_save_a_run(core: Backend) -> None:
    parts: Json = {
        "state": {"a": 1},
        "actions": [action("act", [effect("inc", 0)])],
        "random_events": [event("e", [effect("dec", 5)])],
        "loss_conditions": [{"id": "l", "when": {">": [{"var": "state.a"}, 0]}}, at_most("m", "state.a", -1)],
    }
    proofs = on(core, **parts).prove(5)
    assert [proof.path for proof in proofs if proof.code == "CERTAIN_LOSS"] == ["/loss_conditions/0"]


# --- dry-runs ---


def risky(**parts: Any) -> Json:
    return later(
        state={"a": 4, "b": 0, "note": "n"},
        bounds={"state.a": {"max": 7}, "state.b": {"min": -1, "max": 1.5}},
        deal=[
            {"id": "x", "path": "state.a", "values": [2, 4, 6]},
            {"id": "y", "path": "state.note", "values": ["p", "q"]},
        ],
        horizon=12,
        actions=[
            action("up", [effect("inc", 2), effect("dec", 0.75, "state.b")]),
            action("wait", [effect("mul", -2, "state.b")]),
            action("set", [effect("set", "d", "state.b")], derives={"d": {"+": [{"var": "state.a"}, -3]}}),
        ],
        random_events=[event("hit", [effect("dec", 1)]), event("blow", [effect("dec", 2)], duration="2h")],
        loss_conditions=[at_most("out", "state.a", 0), never("b")],
        win_conditions=[
            {
                "id": "w",
                "when": {"and": [{">": [{"var": "state.b"}, 1]}, {"==": [{"var": "state.note"}, "p"]}]},
            },
        ],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 0.5, "state.b": 0.25}},
        **parts,
    )


@pytest.mark.parametrize("persona", ["idle", "random"])
def test_generated_source_follows_the_keys(persona: str) -> None:
    report, abandoned = compiled_report(risky(), persona=persona, runs=60)
    assert abandoned == 0
    assert report == interpreted_report(risky(), persona=persona, runs=60)


@pytest.mark.slow_after(1, reason="plays a thousand runs on both cores")
@pytest.mark.parametrize("persona", engine.PERSONAS)
def test_both_cores_report_the_same(persona: Persona) -> None:
    document = json.dumps(risky()).encode("utf-8")
    reports = [
        program_on(backend_named(name), document).dry_run(
            runs=70,
            persona=persona,
            digest=True,
            detail=True,
            watch={"state.a": 2.0, "state.b": 1.0},
        )
        for name in ("python", "native")
    ]
    assert reports[0] == reports[1]
    assert reports[0].errored == 0


# --- texts ---


def test_texts_change_the_hash_and_no_rule(core: Backend) -> None:
    person = {
        "id": "x",
        "name": "X",
        "voice": "low",
        "manner": "calm",
        "wants": "w",
        "knows": "k",
        "secret": "s",
    }
    texts: Json = {
        "premise": {"text": "t", "tone": "dry", "person": "second", "tense": "present"},
        "opening": "o",
        "epilogues": {"out": "e"},
        "labels": {
            "state.a": {"name": "A", "unit": "u", "bands": [{"upto": 3, "word": "low"}, {"word": "high"}]}
        },
        "entities": [person],
        "loss_conditions": [at_most("out", "state.a", 0), never("b")],
    }
    assert codes(later(**texts)) == []
    read = {"==": [{"var": "entities.0.secret"}, "s"]}
    program = on(core, **texts, actions=[action("act", [], preconditions=read)])
    assert not program.act(program.new_state(), "act").accepted
    assert program.spec_hash != on(core).spec_hash


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"epilogues": {"zz": "x"}}, ("UNKNOWN_ENDING", "/epilogues/zz")),
        ({"labels": {"state.zz": {"name": "x"}}}, ("UNKNOWN_PATH", "/labels/state.zz")),
        ({"premise": {"text": "x" * 2049}}, ("TOO_LONG", "/premise/text")),
        ({"premise": {"text": "x", "tense": "future"}}, ("WRONG_VALUE", "/premise/tense")),
    ],
)
def test_texts_belong_to_what_exists_and_are_short(texts: Json, found: tuple[str, str]) -> None:
    assert codes(later(**texts)) == [found]


# --- parameters in paths and messages ---

WHO = {"type": "string", "enum": ["p", "q", "odd key"]}
SAID = "state.said[params.who]"


def asking(**parts: Any) -> Json:
    """An action that reads, writes and reports by a parameter."""
    effects = [
        effect("inc", 1, SAID),
        {"op": "addlog", "message": {"param": "who", "texts": {"p": "P", "q": "Q", "odd key": "O"}}},
        {"op": "schedule", "id": "s", "after": 1, "effects": [effect("set", "d", SAID)]},
    ]
    return {
        **action("ask", effects),
        "params": {"who": WHO},
        "preconditions": {"<": [{"var": SAID}, 3]},
        "derives": {"d": {"*": [{"var": SAID}, 10]}},
        **parts,
    }


def told(**parts: Any) -> Json:
    return later(state={"a": 1, "said": {"p": 0, "q": 2, "odd key": 5}}, actions=[asking()], **parts)


def test_the_variant_of_the_parameters_is_executed(core: Backend) -> None:
    program = program_on(core, json.dumps(told()).encode("utf-8"))
    state = program.new_state()
    result = program.act(state, "ask", {"who": "q"})
    assert [(change.path, change.after) for change in result.changes] == [("state.said.q", 3)]
    assert [line.message for line in result.log] == ["Q"]
    program.step(state)
    changes = program.act(state, "ask", {"who": "p"}).changes
    assert [(change.path, change.after) for change in changes] == [("state.said.q", 20), ("state.said.p", 1)]
    refused = program.act(state, "ask", {"who": "odd key"})
    assert [(reason.code, reason.rule) for reason in refused.reasons] == [
        ("PRECONDITION_FAILED", "/actions/0/preconditions"),
    ]
    assert program.act(state, "ask", {"who": "zz"}).reasons[0].code == "ILLEGAL_PARAM"


def test_a_rule_that_fails_names_its_place_in_the_document(core: Backend) -> None:
    failing = asking(effects=[effect("inc", 1), effect("pop", None, SAID)])
    del failing["effects"][1]["value"]
    program = on(core, state={"a": 1, "said": {"p": [1], "q": 0, "odd key": 5}}, actions=[failing])
    (reason,) = program.act(program.new_state(), "ask", {"who": "q"}).reasons
    assert (reason.code, reason.rule) == ("TYPE_MISMATCH", "/actions/0/effects/1")


def test_an_action_with_variants_is_one_choice(core: Backend) -> None:
    program = program_on(core, json.dumps(told(horizon=1)).encode("utf-8"))
    assert program.legal_actions(program.new_state()) == ("ask",)
    report = program.dry_run(runs=300, detail=True, watch={"state.said.p": 1.0, "state.said.q": 1.0})
    assert report.detail is not None
    assert report.detail.actions["ask"].legal == 300
    moves = [report.detail.moves[f"state.said.{key}"] / 2**20 for key in "pq"]
    assert sum(moves) == 300
    assert min(moves) > 100


def test_the_narrator_may_do_what_some_variant_does(core: Backend) -> None:
    program = program_on(core, json.dumps(told()).encode("utf-8"))
    accepted = [
        program.narrate(program.new_state(), [effect("inc", 1, path)]).accepted
        for path in ("state.said.p", 'state.said["odd key"]', "state.a")
    ]
    assert accepted == [True, True, False]


def test_a_proof_follows_each_variant(core: Backend) -> None:
    wins = [{"id": f"w{limit}", "when": {">=": [{"var": "state.said.q"}, limit]}} for limit in (20, 31)]
    dead = asking(id="dead", preconditions={">": [{"var": SAID}, 100]})
    document = told(win_conditions=wins, loss_conditions=ENDS)
    proofs = program_on(core, json.dumps({**document, "actions": [asking(), dead]}).encode("utf-8")).prove(3)
    found = {(proof.code, proof.path) for proof in proofs}
    assert {("UNREACHABLE_WIN", "/win_conditions/1"), ("DEAD_ACTION", "/actions/1")} <= found
    assert ("UNREACHABLE_WIN", "/win_conditions/0") not in found


@pytest.mark.parametrize("persona", ["idle", "random"])
def test_generated_source_follows_variants(persona: str) -> None:
    document = told(horizon=9)
    report, abandoned = compiled_report(document, persona=persona, runs=60)
    assert abandoned == 0
    assert report == interpreted_report(document, persona=persona, runs=60)


def test_a_parameter_in_a_path_needs_its_values(core: Backend) -> None:
    number = {"type": "integer", "minimum": 0, "maximum": 3}
    for params in ({"who": {"type": "string", "maxLength": 3}}, {"who": number}, {}):
        assert ("BAD_PARAM", "/actions/0/effects/0") in codes({**told(), "actions": [asking(params=params)]})
    many = {"type": "string", "enum": [f"k{n}" for n in range(9)]}
    crossed = asking(
        params={"who": many, "m": many}, effects=[effect("inc", 1, "state.x[params.who][params.m]")]
    )
    assert codes({**told(), "actions": [crossed]}) == [("LIMIT_EXCEEDED", "/actions/0")]


def test_a_path_exists_and_a_text_is_there_for_every_value() -> None:
    who = {"type": "string", "enum": ["p", "zz"]}
    ask = asking(params={"who": who})
    del ask["effects"][2]
    assert codes({**told(), "actions": [ask]}) == [
        ("MISSING_KEY", "/actions/0/effects/1/message/texts"),
        ("UNKNOWN_PATH", "/actions/0/preconditions/</0/var"),
        ("UNKNOWN_PATH", "/actions/0/derives/d/*/0/var"),
        ("UNKNOWN_PATH", "/actions/0/effects/0"),
    ]


def test_version_1_0_has_no_variants() -> None:
    document = spec(actions=[asking(effects=[effect("inc", 1, SAID)])], state={"a": 1, "said": {"p": 0}})
    assert ("BAD_PATH", "/actions/0/effects/0") in codes(document)


@pytest.mark.slow_after(1, reason="plays a thousand runs on both cores")
@pytest.mark.parametrize("persona", engine.PERSONAS)
def test_both_cores_report_the_same_of_variants(persona: Persona) -> None:
    document = told(horizon=8, loss_conditions=[at_most("out", "state.a", 0), never("b")])
    document["win_conditions"] = [{"id": "w", "when": {">": [{"var": "state.said.p"}, 15]}}]
    reports = [
        program_on(backend_named(name), json.dumps(document).encode("utf-8")).dry_run(
            runs=40,
            persona=persona,
            digest=True,
            detail=True,
        )
        for name in ("python", "native")
    ]
    assert reports[0] == reports[1]
