"""Lowered keys of version 1.1: once, clues, statements, promises, places."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine.lowering import lower
from peripety.errors import Severity
from support.engine.backends import backend_named, compiled_report, interpreted_report, program_on
from support.engine.seeded_specs import random_spec
from support.engine.specs import action, as_bytes, event, never, spec
from support.engine.story_specs import (
    ACTIONS,
    ENDS,
    STATEMENTS,
    WORDS,
    story,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine import Program, State
    from peripety.engine.backend_protocol import Backend
    from support.engine.specs import Json


def on(core: Backend, **parts: Any) -> tuple[Program, State]:
    program = program_on(core, as_bytes(story(**{"random_events": [], **parts})))
    return program, program.new_state()


def codes(document: Json, *, warnings: bool = False) -> list[tuple[str, str]]:
    found = engine.validate(as_bytes(document))
    return [(one.code, one.path) for one in found if warnings or one.severity is Severity.ERROR]


def act(program: Program, state: State, name: str, **params: Any) -> bool:
    return program.act(state, name, params).accepted


def chosen(op: str, key: str, *options: str) -> Json:
    return action(
        "choose", [{"op": op, key: {"param": "x"}}], params={"x": {"type": "string", "enum": [*options]}}
    )


# --- the document ---


def test_the_hash_is_that_of_the_written_document() -> None:
    program = engine.compile(as_bytes(story()))
    assert program.document == engine.canonicalize(story())
    assert program.spec_hash == hashlib.sha256(program.document).hexdigest()
    assert program.spec == json.loads(program.document)


def test_a_document_without_the_keys_is_not_changed() -> None:
    for version in ("1.0", "1.1"):
        written = spec(spec_version=version)
        assert lower(written).spec == written
        assert lower(written).is_identity


def test_a_document_of_1_0_knows_none_of_the_keys() -> None:
    for key in ("clues", "statements", "promises", "places"):
        assert codes(spec(**{key: {}})) == [("UNKNOWN_KEY", f"/{key}")]
    once = spec(actions=[action("act") | {"once": True}])
    assert codes(once) == [("UNKNOWN_KEY", "/actions/0/once")]
    known = spec(loss_conditions=[{"id": "x", "when": {"known": "mark"}}, never("y")])
    assert codes(known) == [("UNKNOWN_OPERATOR", "/loss_conditions/0/when")]


def test_bulk_validation_leaves_each_key_to_the_reference() -> None:
    alone: list[Json] = [
        {"actions": [{**action("act"), "once": True}]},
        {"random_events": [{**event("e"), "once": True}]},
        {"entities": [{"id": "x", "place": "p"}], "places": {"p": {}}},
        {"clues": {"c": {"text": "x"}}},
        {"statements": {}},
        {"promises": {}},
    ]
    documents = [as_bytes(spec(spec_version="1.1", **parts)) for parts in alone]
    assert backend_named("native").validate_many(documents, 1) == [None] * len(documents)
    for document, result in zip(documents, engine.validate_many(documents), strict=True):
        assert result.program is not None
        assert result.spec_hash == hashlib.sha256(result.program.document).hexdigest()
        assert list(result.findings) == engine.validate(document)


def test_every_path_into_a_program_plays_the_same() -> None:
    document = as_bytes(story())
    canonical = engine.canonicalize(story())
    (bulk,) = engine.validate_many([document])
    assert bulk.program is not None
    programs = [
        engine.compile(document),
        engine.compile_canonical(canonical),
        engine.compile_trusted(canonical),
        bulk.program,
    ]
    digests = {program.dry_run(runs=64, digest=True).digest for program in programs}
    assert len(digests) == 1
    assert {program.spec_hash for program in programs} == {bulk.spec_hash}


@pytest.mark.slow(reason="plays every example in each way on both cores")
def test_both_cores_play_the_same_in_each_way(core: Backend) -> None:
    program = program_on(core, as_bytes(story()))
    reference = interpreted_report(story(), runs=64)
    for persona in ("random", "idle", "planner"):
        runs = 64 if persona == "random" else 8
        other = program_on(backend_named("python"), as_bytes(story()))
        assert program.dry_run(runs=runs, persona=persona, digest=True) == other.dry_run(
            runs=runs,
            persona=persona,
            digest=True,
        )
    assert program.dry_run(runs=64, seed=7, digest=True).digest == reference["digest"]
    assert compiled_report(story(), runs=64)[0] == reference


# --- once ---


def test_an_action_happens_once(core: Backend) -> None:
    program, state = on(core, actions=[{**action("act"), "once": True}, action("other")])
    assert program.legal_actions(state) == ("act", "other")
    assert act(program, state, "act")
    result = program.act(state, "act")
    assert [(one.code, one.rule) for one in result.reasons] == [
        ("PRECONDITION_FAILED", "/actions/0/preconditions"),
    ]
    program.step(state)
    assert program.legal_actions(state) == ("other",)


def test_an_event_happens_once(core: Backend) -> None:
    winds = [{**event(f"e{n}", weight=0.3), "once": True} for n in range(4)]
    program, state = on(core, random_events=winds, loss_conditions=[never("x"), never("y")])
    drawn = [program.step(state).event for _ in range(8)]
    assert sorted(filter(None, drawn)) == ["e0", "e1", "e2", "e3"]


def test_a_schedule_happens_once(core: Backend) -> None:
    program, state = on(core)
    assert act(program, state, "wait")
    program.step(state)
    assert not act(program, state, "wait")
    assert [line["message"] for line in json.loads(state.to_json())["log"]] == ["x"]


def test_an_event_and_an_action_of_one_id_are_apart(core: Backend) -> None:
    program, state = on(
        core,
        actions=[{**action("same"), "once": True}],
        random_events=[{**event("same", weight=0.3), "once": True} for _ in range(1)],
    )
    assert act(program, state, "same")
    assert state.tree()["hidden"]["once"] == {"actions": {"same": True}, "random_events": {"same": False}}


# --- clues ---


def test_a_clue_is_known_once_it_is_revealed(core: Backend) -> None:
    program, state = on(core, actions=[action("search", [{"op": "reveal", "clue": "mark"}]), ACTIONS[-1]])
    assert program.legal_actions(state) == ("search",)
    (change,) = program.act(state, "search").changes
    dealt = state.tree()["hidden"]["owner"]
    assert (change.path, change.after) == ("state.clues.mark", WORDS[dealt])
    assert program.legal_actions(state) == ("search", "name")


def test_the_text_of_a_clue_follows_the_deal(core: Backend) -> None:
    program, _ = on(core, actions=[action("search", [{"op": "reveal", "clue": "mark"}])])
    told = set()
    for seed in range(8):
        state = program.new_state(seed)
        program.act(state, "search")
        told.add((state.tree()["hidden"]["owner"], state.tree()["clues"]["mark"]))
    assert told == {("first", WORDS["first"]), ("second", WORDS["second"])}


@pytest.mark.parametrize(
    ("values", "texts"),
    [([6, 7.5], {"6": "six", "7.5": "more"}), ([True, False], {"true": "yes", "false": "no"})],
)
def test_the_text_of_a_clue_follows_a_deal_of_numbers_or_booleans(
    core: Backend, values: list[Any], texts: Json
) -> None:
    program, _ = on(
        core,
        actions=[action("search", [{"op": "reveal", "clue": "mark"}])],
        deal=[{"id": "owner", "path": "state.hidden.owner", "values": values}],
        clues={"mark": {"text": {"deal": "owner", "texts": texts}}},
        statements={},
        win_conditions=[],
    )
    told = set()
    for seed in range(8):
        state = program.new_state(seed)
        program.act(state, "search")
        told.add((state.tree()["hidden"]["owner"], state.tree()["clues"]["mark"]))
    assert told == {(value, texts[json.dumps(value)]) for value in values}


def test_a_clue_is_revealed_by_events_and_schedules_as_well(core: Backend) -> None:
    reveal = {"op": "reveal", "clue": "odd key"}
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [reveal]}
    program, state = on(core, actions=[action("act", [later])])
    program.act(state, "act")
    program.step(state)
    assert program.step(state).changes[0].after == WORDS["note"]
    program, state = on(core, random_events=[event(f"e{n}", [reveal], weight=0.3) for n in range(4)])
    assert WORDS["note"] in [change.after for change in program.step(state).changes]


@pytest.mark.parametrize("viewer", [None, "me", "beta"])
def test_what_is_not_there_yet_is_in_no_view_and_in_no_change(core: Backend, viewer: str | None) -> None:
    program, state = on(core)
    view = engine.View(engine.Visibility(program.spec), viewer)
    seen = json.dumps(view.project_state(state.tree()))
    assert not any(word in seen for word in ("canary", "mark", "odd key", "claim", "help", "owner", "once"))
    for name, params in (("go", {"to": "middle"}), ("go", {"to": "far"}), ("search", {})):
        result = program.act(state, name, params)
    revealed = [change for change in view.project_changes(result.changes) if "clues" in change.path]
    assert [(change.before, change.after) for change in revealed] == [
        (engine.ABSENT, WORDS[state.tree()["hidden"]["owner"]]),
    ]
    assert list(view.project_state(state.tree())["clues"]) == ["mark"]
    assert view.can_see("state.places.me")
    assert not view.can_see("state.clues.mark")


# --- epilogues ---


def ending(texts: Any, **parts: Any) -> Json:
    return story(epilogues={"out": {"deal": "owner", "texts": texts}}, **parts)


def test_an_epilogue_is_that_of_the_dealt_value(core: Backend) -> None:
    document = ending({"first": "one", "second": "two"}, random_events=[])
    program = program_on(core, as_bytes(document))
    told = set()
    for seed in range(8):
        state = program.new_state(seed)
        owner = state.tree()["hidden"]["owner"]
        assert engine.deal_epilogue(program.spec, state.tree(), state.status) == state.status
        while program.step(state).status.kind == "ongoing":
            pass
        status = engine.deal_epilogue(program.spec, state.tree(), state.status)
        assert engine.read_epilogue(document["epilogues"], state.status) == ""
        told.add((owner, engine.read_epilogue(document["epilogues"], status)))
    assert told == {("first", "one"), ("second", "two")}


def test_an_epilogue_without_a_deal_is_its_text() -> None:
    lost = engine.Status("lost", "out")
    assert engine.deal_epilogue(story(epilogues={"out": "text"}), {}, lost) == lost
    assert engine.read_epilogue({"out": "text"}, lost) == "text"
    assert engine.read_epilogue({"other": "text"}, lost) == ""


def test_an_epilogue_names_a_deal_and_an_ending_that_exist() -> None:
    texts = {"first": "one", "second": "two"}
    assert codes(ending(texts)) == []
    unknown = {"out": {"deal": "none", "texts": texts}}
    assert codes(story(epilogues=unknown)) == [("UNKNOWN_DEAL", "/epilogues/out/deal")]
    renamed = [{**ENDS[0], "id": "renamed"}, ENDS[1]]
    assert codes(ending(texts, loss_conditions=renamed)) == [("UNKNOWN_ENDING", "/epilogues/out")]


def test_an_epilogue_needs_a_text_for_each_value() -> None:
    bare = spec(
        spec_version="1.1",
        deal=[{"id": "owner", "path": "state.a", "values": [1, 2]}],
        loss_conditions=[never("out"), never("other")],
        epilogues={"out": {"deal": "owner", "texts": {"1": "one"}}},
    )
    assert codes(bare) == [("MISSING_KEY", "/epilogues/out/texts")]
    bare["epilogues"]["out"]["texts"]["2"] = "x" * 10_000
    assert codes(bare) == []
    assert backend_named("native").validate_many([as_bytes(bare)], 1) == [None]
    assert codes({**bare, "spec_version": "1.0"})[0] == ("UNKNOWN_KEY", "/deal")


# --- conditional effects ---


RICH: Json = {">=": [{"var": "state.a"}, 12]}


def reveal_when(when: Json, clue_id: Any = "mark") -> Json:
    return {"op": "reveal", "clue": clue_id, "when": when}


def test_a_clue_is_revealed_only_while_its_condition_holds(core: Backend) -> None:
    spend = {"op": "set", "path": "state.a", "value": 5}
    search = action("search", [spend, reveal_when(RICH)])
    program, state = on(core, actions=[search, action("other", [reveal_when(RICH, "odd key")])])
    assert act(program, state, "search")
    found = state.tree()["clues"]["mark"]
    assert found == WORDS[state.tree()["hidden"]["owner"]]
    # The condition does not hold now: what is known remains, and the rest stays unknown.
    assert act(program, state, "search")
    assert act(program, state, "other")
    assert state.tree()["clues"] == {"mark": found, "odd key": ""}


def test_a_statement_is_made_only_while_its_condition_holds(core: Backend) -> None:
    said = {"op": "say", "statement": "claim", "when": {"!": [{"known": "odd key"}]}}
    tell = action("tell", [{"op": "reveal", "clue": "odd key"}])
    program, state = on(core, actions=[action("ask", [said]), tell])
    act(program, state, "tell")
    assert act(program, state, "ask")
    assert state.tree()["statements"]["claim"] == ""
    program, state = on(core, actions=[action("ask", [said]), tell])
    assert act(program, state, "ask")
    assert state.tree()["statements"]["claim"] == WORDS["claim"]


def test_a_condition_reads_parameters_and_derived_values(core: Backend) -> None:
    when: Json = {"and": [{"===": [{"var": "params.x"}, "odd key"]}, {"var": "derives.is_rich"}]}
    choose = chosen("reveal", "clue", "mark", "odd key") | {"derives": {"is_rich": RICH}}
    choose["effects"] = [reveal_when(when, {"param": "x"})]
    program, state = on(core, actions=[*ACTIONS, choose])
    assert act(program, state, "choose", x="mark")
    assert state.tree()["clues"] == {"mark": "", "odd key": ""}
    assert act(program, state, "choose", x="odd key")
    assert state.tree()["clues"] == {"mark": "", "odd key": WORDS["note"]}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_later_effect_keeps_what_an_earlier_one_reveals(core: Backend, is_first: bool) -> None:
    yes: Json = {"<": [1, 2]}
    no: Json = {"<": [2, 1]}
    first, second = (yes, no) if is_first else (no, yes)
    for one, other in ((("odd key", "odd key")), ({"param": "x"}, "odd key"), ("odd key", {"param": "x"})):
        choose = chosen("reveal", "clue", "mark", "odd key")
        choose["effects"] = [reveal_when(first, one), reveal_when(second, other)]
        program, state = on(core, actions=[*ACTIONS, choose])
        assert act(program, state, "choose", x="odd key")
        assert state.tree()["clues"] == {"mark": "", "odd key": WORDS["note"]}
    later = {"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "reveal", "clue": "odd key"}]}
    program, state = on(core, actions=[action("act", [later, reveal_when(no, "odd key")])])
    assert act(program, state, "act")
    assert state.tree()["clues"]["odd key"] == ""


@pytest.mark.parametrize("viewer", [None, "me", "beta"])
def test_no_view_has_a_change_that_keeps_a_text(core: Backend, viewer: str | None) -> None:
    search = action("search", [reveal_when({"===": [{"var": "state.hidden.owner"}, "first"]})])
    program, _ = on(core, actions=[search, *ACTIONS[2:]])
    view = engine.View(engine.Visibility(program.spec), viewer)
    shown = set()
    for seed in range(8):
        state = program.new_state(seed)
        owner = state.tree()["hidden"]["owner"]
        for _ in range(2):
            changes = view.project_changes(program.act(state, "search").changes)
            shown.add((owner, tuple(change.after for change in changes)))
    assert shown == {("first", (WORDS["first"],)), ("first", ()), ("second", ())}


def test_an_empty_condition_always_holds() -> None:
    bare: Json = {"op": "reveal", "clue": "mark"}
    documents = [
        story(actions=[*ACTIONS, action("more", [effect])]) for effect in (bare, {**bare, "when": {}})
    ]
    assert lower(documents[0]).spec == lower(documents[1]).spec


# --- statements ---


@pytest.mark.parametrize(
    ("true", "is_broken"),
    [
        (False, True),
        (True, False),
        ({"<": [{"var": "state.a"}, 5]}, True),
        ({">": [{"var": "state.a"}, 5]}, False),
    ],
)
def test_a_false_statement_is_broken_by_its_clue(core: Backend, true: Any, is_broken: bool) -> None:
    said, shown = (
        action("say", [{"op": "say", "statement": "claim"}]),
        action("show", [{"op": "reveal", "clue": "mark"}]),
    )
    checks = action("check", preconditions={"broken": "claim"})
    statements = {"claim": {**STATEMENTS["claim"], "true": true}}
    program, state = on(core, actions=[said, shown, checks], statements=statements, win_conditions=[])
    assert "check" not in program.legal_actions(state)
    program.act(state, "say")
    assert state.tree()["statements"] == {"claim": WORDS["claim"]}
    assert "check" not in program.legal_actions(state)
    program.act(state, "show")
    assert ("check" in program.legal_actions(state)) == is_broken


# --- promises ---


def steps(program: Program, state: State, count: int) -> list[str]:
    told = []
    for _ in range(count):
        program.step(state)
        told.append(state.tree()["promises"]["help"])
    return told


ENDLESS = {"loss_conditions": [never("x"), never("y")], "win_conditions": []}


def test_a_promise_that_is_due_is_broken(core: Backend) -> None:
    program, state = on(core, **ENDLESS)
    assert program.legal_actions(state) == ("go", "ask", "pledge", "wait")
    assert act(program, state, "pledge")
    assert not act(program, state, "pledge")
    assert steps(program, state, 4) == ["open", "open", "broken", "broken"]
    assert not act(program, state, "fulfil")


@pytest.mark.parametrize(("name", "status"), [("fulfil", "kept"), ("betray", "broken")])
def test_a_promise_is_kept_or_broken_and_then_no_longer_due(core: Backend, name: str, status: str) -> None:
    program, state = on(core, **ENDLESS)
    assert not act(program, state, name)
    program.act(state, "pledge")
    assert act(program, state, name)
    assert steps(program, state, 4) == [status] * 4
    assert not act(program, state, "fulfil")
    assert not act(program, state, "betray")


@pytest.mark.parametrize(
    ("name", "status", "turns"), [("fulfil", "kept", 3), ("betray", "broken", 3), ("", "broken", 5)]
)
def test_others_hear_of_a_promise_later(core: Backend, name: str, status: str, turns: int) -> None:
    program, state = on(core, **ENDLESS)
    program.act(state, "pledge")
    if name:
        program.act(state, name)
    heard = []
    for _ in range(6):
        heard.append(state.tree()["private"]["gamma"]["promises"]["help"])
        program.step(state)
    assert heard[turns - 1 : turns + 1] == ["", status]
    view = engine.View(engine.Visibility(program.spec), "gamma")
    assert view.project_state(state.tree())["private"]["gamma"]["promises"] == {"help": status}
    other = engine.View(engine.Visibility(program.spec), "beta")
    assert "private" not in other.project_state(state.tree())


# --- places ---


def test_entities_move_along_exits_only(core: Backend) -> None:
    program, state = on(core)
    assert state.tree()["places"] == {"me": "near", "beta": "middle", "gamma": "middle"}
    assert not act(program, state, "go", to="far")
    assert not act(program, state, "go", to="near")
    assert act(program, state, "go", to="middle")
    assert act(program, state, "go", to="far")
    assert not act(program, state, "go", to="near")
    assert state.tree()["places"]["me"] == "far"


def test_an_event_moves_along_exits_only(core: Backend) -> None:
    walk = {"op": "move", "entity": "gamma", "to": "far"}
    winds = [event(f"e{n}", [walk], weight=0.3) for n in range(4)]
    program, state = on(core, random_events=winds)
    assert [program.step(state).event is not None for _ in range(3)] == [True, False, False]
    assert state.tree()["places"]["gamma"] == "far"


def test_the_entity_of_a_move_may_be_a_parameter(core: Backend) -> None:
    send = action(
        "send",
        [{"op": "move", "entity": {"param": "who"}, "to": "middle"}],
        params={"who": {"type": "string", "enum": ["me", "gamma"]}},
    )
    program, state = on(core, actions=[send])
    assert not act(program, state, "send", who="gamma")
    assert act(program, state, "send", who="me")
    assert state.tree()["places"] == {"me": "middle", "beta": "middle", "gamma": "middle"}


def test_a_place_without_exits_is_not_left(core: Backend) -> None:
    places: Json = {"near": {}, "middle": {}, "far": {}}
    program, state = on(core, places=places)
    assert "go" not in program.legal_actions(state)


# --- the narrator ---


def test_no_lowered_write_is_a_precedent_for_the_narrator(core: Backend) -> None:
    program, state = on(core, **ENDLESS)
    for path, value in (
        ("state.clues.mark", WORDS["first"]),
        ("state.statements.claim", WORDS["claim"]),
        ("state.promises.help", "kept"),
        ("state.places.me", "middle"),
        ("state.hidden.once.actions.search", True),
    ):
        result = program.narrate(state, [{"op": "set", "path": path, "value": value}])
        assert [reason.code for reason in result.reasons] == ["OUT_OF_SCOPE"]
    paths = {engine.format_path(one.path) for one in engine.list_narrator_permissions(program.spec)}
    assert paths == {"state.a", "state.b"}
    # Paths that an end condition reads are not in scope, also if a statement reads them.
    read = {**STATEMENTS["claim"], "true": {"<": [{"var": "state.a"}, 5]}}
    ends: Json = {
        "win_conditions": [{"id": "up", "when": {"broken": "claim"}}],
        "statements": {"claim": read},
    }
    program, _ = on(core, **ENDLESS | ends)
    paths = {engine.format_path(one.path) for one in engine.list_narrator_permissions(program.spec)}
    assert paths == {"state.b"}


# --- places in the document ---


def test_errors_name_the_place_in_the_written_document(core: Backend) -> None:
    fails = {"op": "push", "path": "state.a", "value": 1}
    broken = {**action("act", [{"op": "move", "entity": "me", "to": "middle"}, fails]), "once": True}
    divides = {**action("divide", preconditions={">": [{"/": [1, {"var": "state.zero"}]}, 0]}), "once": True}
    state = {"a": [1], "b": 2, "zero": 0, "hidden": {"owner": "first"}}
    program, now = on(
        core,
        state=state,
        actions=[broken, divides],
        win_conditions=[],
        loss_conditions=[never("x"), never("y")],
        negativity_budget={"min_fail_rate": 0.2},
    )
    now = program.new_state()
    assert program.act(now, "act").accepted
    (reason,) = program.act(now, "divide").reasons
    assert (reason.code, reason.rule) == ("DIVISION_BY_ZERO", "/actions/1/preconditions")
    report = program.dry_run(runs=8)
    assert {error.rule for error in report.errors} == {"/actions/1/preconditions"}


def test_findings_name_the_place_in_the_written_document() -> None:
    bad = {
        **action("act", [{"op": "inc", "path": "state.none", "value": 1}], preconditions={"nope": [1]}),
        "once": True,
    }
    assert codes(story(actions=[bad])) == [
        ("UNKNOWN_OPERATOR", "/actions/0/preconditions"),
        ("UNKNOWN_PATH", "/actions/0/effects/0"),
    ]


def test_proofs_name_the_place_in_the_written_document() -> None:
    stuck = {**action("stuck", preconditions={"<": [{"var": "state.a"}, -5]}), "once": True}
    program = engine.compile(as_bytes(story(actions=[*ACTIONS, stuck])))
    assert ("DEAD_ACTION", f"/actions/{len(ACTIONS)}") in [
        (proof.code, proof.path) for proof in program.prove(10)
    ]


# --- findings ---


def test_the_scenario_with_every_key_has_no_finding() -> None:
    assert codes(story()) == []


def changed(change: Callable[[Json], Any]) -> Json:
    document = deepcopy(story())
    change(document)
    return document


def adding(*effects: Json, **parts: Any) -> Callable[[Json], Any]:
    return lambda document: document["actions"].append(action("more", [*effects], **parts))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (adding({"op": "reveal", "clue": "none"}), ("UNKNOWN_CLUE", "/actions/8/effects/0/clue")),
        (adding({"op": "say", "statement": "none"}), ("UNKNOWN_STATEMENT", "/actions/8/effects/0/statement")),
        (adding({"op": "keep", "promise": "none"}), ("UNKNOWN_PROMISE", "/actions/8/effects/0/promise")),
        (adding({"op": "move", "entity": "me", "to": "none"}), ("UNKNOWN_PLACE", "/actions/8/effects/0/to")),
        (
            adding({"op": "move", "entity": "x", "to": "near"}),
            ("UNKNOWN_PLACE", "/actions/8/effects/0/entity"),
        ),
        (
            adding({"op": "move", "entity": "me", "to": {"param": "to"}}),
            ("BAD_PARAM", "/actions/8/effects/0/to"),
        ),
        (
            adding({"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "keep", "promise": "help"}]}),
            ("NOT_SCHEDULABLE", "/actions/8/effects/0/effects/0"),
        ),
        (
            adding({"op": "schedule", "id": "s", "after": 1, "effects": [reveal_when({"<": [1, 2]})]}),
            ("NOT_SCHEDULABLE", "/actions/8/effects/0/effects/0"),
        ),
        (
            adding({"op": "say", "statement": "claim", "when": {"!": [{"known": "none"}]}}),
            ("UNKNOWN_CLUE", "/actions/8/effects/0/when/!/0/known"),
        ),
        (
            adding({"op": "dec", "path": "state.a", "value": 1}, reveal_when({"!": [{"var": "state.zz"}]})),
            ("UNKNOWN_PATH", "/actions/8/effects/1/when/!/0/var"),
        ),
        (
            adding(reveal_when({"<": [1]})),
            ("WRONG_ARITY", "/actions/8/effects/0/when/<"),
        ),
        (
            adding(reveal_when({"var": 'derives["lowered:when:0"]'})),
            ("DERIVE_CYCLE", "/actions/8/effects/0/when"),
        ),
        (adding(preconditions={"known": "none"}), ("UNKNOWN_CLUE", "/actions/8/preconditions/known")),
        (
            adding(preconditions={"!": [{"broken": ["none"]}]}),
            ("UNKNOWN_STATEMENT", "/actions/8/preconditions/!/0/broken"),
        ),
        (lambda d: d["statements"]["claim"].update(by="none"), ("UNKNOWN_ENTITY", "/statements/claim/by")),
        (
            lambda d: d["statements"]["claim"].update(broken_by="none"),
            ("UNKNOWN_CLUE", "/statements/claim/broken_by"),
        ),
        (lambda d: d["promises"]["help"].update(to="none"), ("UNKNOWN_ENTITY", "/promises/help/to")),
        (lambda d: d["promises"]["help"].update(due="soon"), ("BAD_DURATION", "/promises/help/due")),
        (
            lambda d: d["promises"]["help"].update(hears=[{"entity": "none", "after": 1}]),
            ("UNKNOWN_ENTITY", "/promises/help/hears/0/entity"),
        ),
        (lambda d: d["places"]["near"].update(exits=["none"]), ("UNKNOWN_PLACE", "/places/near/exits/0")),
        (lambda d: d["entities"][0].update(place="none"), ("UNKNOWN_PLACE", "/entities/0/place")),
        (lambda d: d["clues"]["mark"]["text"].update(deal="none"), ("UNKNOWN_DEAL", "/clues/mark/text/deal")),
        (lambda d: d["deal"][0].update(values=["first", ["a"]]), ("UNKNOWN_DEAL", "/clues/mark/text/deal")),
        (
            lambda d: d["clues"]["mark"]["text"]["texts"].pop("second"),
            ("MISSING_KEY", "/clues/mark/text/texts"),
        ),
        (lambda d: d["clues"].update(constructor={"text": "x"}), ("FORBIDDEN_KEY", "/clues/constructor")),
        (lambda d: d["state"].update(clues={}), ("RESERVED_NAME", "/state/clues")),
        (lambda d: d["state"]["hidden"].update(once={}), ("RESERVED_NAME", "/state/hidden/once")),
        (lambda d: d["state"].update(hidden=5), ("RESERVED_NAME", "/state/hidden")),
        (lambda d: d["state"].update(private=5), ("RESERVED_NAME", "/state/private")),
        (lambda d: d["state"].update(private={"gamma": 5}), ("RESERVED_NAME", "/state/private/gamma")),
        (
            lambda d: d["state"].update(private={"gamma": {"promises": {}}}),
            ("RESERVED_NAME", "/state/private/gamma/promises"),
        ),
        (
            adding({"op": "set", "path": "state.clues.mark", "value": "x"}),
            ("RESERVED_NAME", "/actions/8/effects/0"),
        ),
        (
            adding({"op": "patch", "path": "state", "value": {"places": {}}}),
            ("RESERVED_NAME", "/actions/8/effects/0"),
        ),
        (
            adding({"op": "set", "path": "state.hidden", "value": {}}),
            ("RESERVED_NAME", "/actions/8/effects/0"),
        ),
        (adding(derives={"lowered:true": 1}), ("RESERVED_NAME", "/actions/8/derives/lowered:true")),
        (
            adding({"op": "set", "path": "state.b", "value": "lowered:true"}),
            ("RESERVED_NAME", "/actions/8/effects/0/value"),
        ),
        (
            adding(
                {
                    "op": "schedule",
                    "id": "promise:help",
                    "after": 1,
                    "effects": [{"op": "addlog", "message": "x"}],
                }
            ),
            ("RESERVED_NAME", "/actions/8/effects/0/id"),
        ),
        (
            lambda d: d.update(narrator_scope=[{"path": "state.places", "ops": ["set"]}]),
            ("RESERVED_NAME", "/narrator_scope/0/path"),
        ),
        (
            lambda d: d["deal"].append({"id": "x", "path": "state.promises.help", "values": ["a", "b"]}),
            ("RESERVED_NAME", "/deal/1/path"),
        ),
    ],
)
def test_what_is_wrong_is_found_where_it_is_written(
    change: Callable[[Json], Any], found: tuple[str, str]
) -> None:
    assert found in codes(changed(change))


def test_rules_may_read_and_label_and_hide_lowered_state() -> None:
    document = changed(
        adding(preconditions={"===": [{"var": "state.places.me"}, {"var": "state.places.beta"}]})
    )
    document["labels"] = {"state.places.me": {"name": "Where"}}
    document["visibility"] = [{"path": "state.places.gamma", "to": ["gamma"]}]
    assert codes(document) == []


# --- parameters and deals ---


def test_a_parameter_names_the_clue_or_the_statement(core: Backend) -> None:
    program, state = on(core, actions=[*ACTIONS, chosen("reveal", "clue", "mark", "odd key")])
    assert act(program, state, "choose", x="odd key")
    assert state.tree()["clues"] == {"mark": "", "odd key": WORDS["note"]}
    assert act(program, state, "choose", x="mark")
    assert state.tree()["clues"]["mark"] in {WORDS["first"], WORDS["second"]}
    other = {**STATEMENTS["claim"], "text": "other"}
    spoken = [*ACTIONS, chosen("say", "statement", "claim", "other")]
    program, state = on(core, actions=spoken, statements={**STATEMENTS, "other": other})
    assert act(program, state, "choose", x="other")
    assert state.tree()["statements"] == {"claim": "", "other": "other"}


def test_the_text_of_a_statement_follows_the_deal(core: Backend) -> None:
    texts = {"deal": "owner", "texts": {"first": "one", "second": "two"}}
    program, state = on(core, statements={"claim": {**STATEMENTS["claim"], "text": texts}})
    assert act(program, state, "ask")
    tree = state.tree()
    assert tree["statements"]["claim"] == {"first": "one", "second": "two"}[tree["hidden"]["owner"]]


# --- solutions ---


def solved(**parts: Any) -> Json:
    """A scenario in which the value of a deal is to be named."""
    named = {"name": {"type": "string", "enum": ["first", "second"]}}
    right = {"===": [{"var": "params.name"}, {"var": "state.hidden.owner"}]}
    name = action(
        "accuse",
        [{"op": "set", "path": "state.b", "value": "gain"}],
        params=named,
        derives={"gain": {"if": [right, 9, 0]}},
    )
    document = story(random_events=[], actions=[*ACTIONS, name], **parts)
    document["win_conditions"] = [{"id": "up", "when": {">=": [{"var": "state.b"}, 9]}}]
    return document


def naming(value: Any, **parts: Any) -> Json:
    otherwise = {"action": "accuse", "params": {"name": value}}
    return {"id": "s", "steps": [{"action": "name", "otherwise": otherwise}], **parts}


def test_a_solution_for_each_value_of_a_deal_is_written_once(core: Backend) -> None:
    by_hand = [
        naming(value, id=value, when={"===": [{"var": "state.hidden.owner"}, value]})
        for value in ("first", "second")
    ]
    reports = [
        program_on(core, as_bytes(solved(solutions=solutions))).dry_run(runs=40, persona="par", digest=True)
        for solutions in ([naming({"deal": "owner"})], by_hand)
    ]
    assert reports[0] == reports[1]
    assert reports[0].won == 40


def test_a_lowered_solution_keeps_its_own_condition_and_its_place() -> None:
    document = solved(solutions=[naming("first"), naming({"deal": "owner"}, id="t", when={"==": [1, 2]})])
    lowering = lower(document)
    assert [one["id"] for one in lowering.spec["solutions"]] == ["s", "t:0", "t:1"]
    assert lowering.spec["solutions"][2]["when"] == {
        "and": [{"===": [{"var": "state.hidden.owner"}, "second"]}, {"==": [1, 2]}],
    }
    assert lowering.to_written("/solutions/2/steps/0/params") == "/solutions/1/steps/0/params"


@pytest.mark.parametrize(
    ("solution", "found"),
    [
        (naming({"deal": "zz"}), [("UNKNOWN_DEAL", "/solutions/0")]),
        (naming({"deal": "odd"}), []),
    ],
)
def test_the_values_of_a_deal_are_legal_parameters(solution: Json, found: list[tuple[str, str]]) -> None:
    document = solved(solutions=[solution])
    document["state"]["k"] = 1
    document["deal"].append({"id": "odd", "path": "state.k", "values": [1, 2]})
    assert codes(document) == [*found, ("BAD_STEP", "/solutions/0/steps/0/otherwise/params")]


def test_a_solution_names_deals_with_a_limited_number_of_combinations() -> None:
    steps = [
        {"action": "accuse", "params": {"name": {"deal": f"d{number}"}}, "otherwise": "skip"}
        for number in range(4)
    ]
    document = solved(solutions=[{"id": "s", "steps": steps}])
    for number in range(4):
        document["state"][f"k{number}"] = "first"
        values = ["first", "second", *(f"v{value}" for value in range(3))]
        document["deal"].append({"id": f"d{number}", "path": f"state.k{number}", "values": values})
    assert ("TOO_MANY_DEALS", "/solutions/0") in codes(document)
    for deal in document["deal"][1:]:
        deal["values"] = ["first", "second"]
    assert codes(document) == []
    assert len(lower(document).spec["solutions"]) == 16


# --- craft ---


def warnings(document: Json) -> list[tuple[str, str]]:
    found = engine.validate(as_bytes(document))
    return [(one.code, one.path) for one in found if one.severity is Severity.WARNING]


def clue(about: str = "owner") -> Json:
    return {"text": "x", "about": about}


def reveals(name: str, clue_id: str, **parts: Any) -> Json:
    return action(name, [{"op": "reveal", "clue": clue_id}], **parts)


STORY_CLUE = story()["clues"]["mark"]
THREE = {"mark": clue(), "two": clue(), "three": clue()}


def test_a_conclusion_needs_three_clues() -> None:
    assert warnings(story()) == [("FEW_CLUES", "/clues/mark/about")]
    assert warnings(story(clues={**THREE, "odd key": {"text": "x"}})) == []


@pytest.mark.parametrize(
    ("rules", "is_found"),
    [
        ([reveals("a", "mark")], True),
        ([reveals("a", "mark"), action("b", preconditions={"and": [{"known": "mark"}]})], False),
    ],
)
def test_what_a_condition_tests_needs_no_inference(rules: list[Json], is_found: bool) -> None:
    document = spec(spec_version="1.1", clues={"mark": clue()}, actions=rules)
    assert warnings(document) == ([("FEW_CLUES", "/clues/mark/about")] if is_found else [])


def test_a_clue_that_breaks_a_statement_needs_no_other() -> None:
    claim = {"by": "me", "text": "x", "true": False, "broken_by": "mark"}
    parts: Json = {"entities": [{"id": "me", "name": "Me"}], "statements": {"claim": claim}}
    document = spec(spec_version="1.1", clues={"mark": clue()}, actions=[reveals("a", "mark")], **parts)
    assert warnings(document) == []


def test_with_a_deal_only_clues_for_it_are_counted() -> None:
    dealt = story(clues={"mark": STORY_CLUE, "odd key": clue("x"), "two": clue("x")})
    assert warnings(dealt)[0] == ("FEW_CLUES", "/clues/mark/about")
    literal = story(clues={"mark": clue(), "odd key": clue("x"), "two": clue("x")})
    assert "FEW_CLUES" not in dict(warnings(literal))


def test_a_conclusion_needs_a_clue_without_luck() -> None:
    parts: Json = {"random_events": [], "clues": THREE, "statements": None, "win_conditions": []}
    event_only = story(
        **parts
        | {"actions": [action("a")], "random_events": [event("e", [{"op": "reveal", "clue": "mark"}])]}
    )
    assert warnings(event_only) == [("CLUES_BY_LUCK", "/clues/mark/about")]
    locked = [reveals("a", "mark", preconditions={"and": [{"known": "two"}, {"<": [1, 2]}]})]
    assert warnings(story(**parts, actions=locked)) == [("CLUES_BY_LUCK", "/clues/mark/about")]
    assert warnings(
        story(**parts, actions=[*locked, reveals("b", "two", preconditions={"known": "mark"})])
    ) == [
        ("CLUES_BY_LUCK", "/clues/mark/about"),
    ]
    assert warnings(story(**parts, actions=[*locked, reveals("b", "two")])) == []


def test_a_conditional_reveal_needs_the_clues_of_its_condition() -> None:
    parts: Json = {"random_events": [], "clues": THREE, "statements": None, "win_conditions": []}
    locked = [action("a", [reveal_when({"known": "two"})])]
    assert warnings(story(**parts, actions=locked)) == [("CLUES_BY_LUCK", "/clues/mark/about")]
    assert warnings(story(**parts, actions=[*locked, reveals("b", "two")])) == []
    assert warnings(story(**parts, actions=[action("a", [reveal_when(RICH)])])) == []


def test_a_clue_that_another_reveal_waits_for_needs_no_inference() -> None:
    rules = [reveals("a", "mark"), action("b", [reveal_when({"known": "mark"}, "x")])]
    document = spec(spec_version="1.1", clues={"mark": clue(), "x": {"text": "x"}}, actions=rules)
    assert warnings(document) == []


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, False),
        ({"true": True, "broken_by": None}, False),
        ({"broken_by": None}, True),
        ({"broken_by": "three"}, True),
    ],
)
def test_something_breaks_every_statement_that_can_be_false(changes: Json, is_found: bool) -> None:
    statement = {key: value for key, value in {**STATEMENTS["claim"], **changes}.items() if value is not None}
    document = story(clues={**THREE, "odd key": {"text": "x"}}, statements={"claim": statement})
    assert warnings(document) == ([("UNBROKEN_LIE", "/statements/claim")] if is_found else [])


@pytest.mark.parametrize(
    ("wants", "is_found"),
    [
        (["the near", "the far"], True),
        (["the near", "also near"], False),
        (["to follow Beta Gammason", "the far"], False),
        (["for gammason to leave", "the far"], False),
        (["the near", "a word of no part"], False),
        (["the supply", "to leave"], False),
        (["the far", None], False),
        (["Help", "the far end"], True),
    ],
)
def test_wants_that_do_not_cross_are_told(wants: list[str | None], is_found: bool) -> None:
    people = [{"id": "me", "name": "Me"}, {"id": "b", "name": "Beta Gammason"}]
    entities = [{**one, "wants": want} if want else one for one, want in zip(people, wants, strict=True)]
    places = {"p": {"name": "Near"}, "far": {}}
    document = spec(
        spec_version="1.1",
        entities=entities,
        places=places,
        promises={"help": {"to": "b", "terms": "x", "due": 2}},
    )
    assert warnings(document) == ([("WANTS_APART", "/entities/0/wants")] if is_found else [])
    (bulk,) = engine.validate_many([as_bytes(document)])
    assert [one.code for one in bulk.findings] == (["WANTS_APART"] if is_found else [])
    assert bulk.program is not None


# --- random scenarios ---


@pytest.mark.parametrize("seed", range(12))
def test_random_scenarios_with_the_keys_are_valid_and_alike_on_both_cores(core: Backend, seed: int) -> None:
    document = random_spec(seed, shape="words", later=True, story=1)
    assert codes(document) == []
    reference = program_on(backend_named("python"), as_bytes(document))
    program = program_on(core, as_bytes(document))
    asked: Json = {"runs": 8, "horizon": 12, "digest": True}
    assert program.dry_run(**asked) == reference.dry_run(**asked)


@pytest.mark.parametrize("seed", range(12))
def test_no_empty_text_is_seen_in_random_scenarios(seed: int) -> None:
    document = random_spec(seed, shape="words", later=True, story=1)
    program = engine.compile(as_bytes(document))
    view = engine.View(engine.Visibility(program.spec), None)
    state = program.new_state(seed)
    for _ in range(6):
        if state.status.kind != "ongoing":
            break
        legal = program.legal_actions(state)
        changes = [change for name in legal for change in program.act(state, name, {}).changes]
        changes += program.step(state).changes
        for change in view.project_changes(changes):
            if change.path.startswith(("state.clues", "state.statements", "state.promises")):
                assert change.after
        seen = view.project_state(state.tree())
        for section in ("clues", "statements", "promises"):
            assert "" not in seen.get(section, {}).values()


def test_the_example_runs_as_the_documentation_says() -> None:
    root = Path(__file__).parents[3]
    document = (root / "examples" / "story.json").read_bytes()
    assert engine.validate(document) == []
    report = engine.compile(document).dry_run(runs=1000)
    page = (root / "docs" / "reference" / "scenarios.md").read_text("utf-8")
    assert f"lost {report.lost}, won {report.won}, survived {report.survived}, errored 0" in page
