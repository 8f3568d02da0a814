"""Lowered keys in the narrator's prompt: place, statements and promises; no clue before it is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.scenario.action_tools import scenario_tools
from peripety.scenario.rule_graph.graph import build_graph
from peripety.session.narration.secret_filter import collect_secrets
from peripety.session.narration.turn_context import describe_place
from peripety.session.narration.turn_prompt import build_messages, collect_facts, render_system_text
from peripety.session.types import PlayerAction
from support.engine.specs import as_bytes
from support.engine.story_specs import EVENTS, WORDS, story
from support.gateway.fake_gateway import calling
from support.session.sessions import outcome, played, results, scene_of

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext


QUIET = story(random_events=[{**EVENTS[0], "weight": 0.05}])
NEAR_AND_FAR = [{"id": "near", "name": "Near"}, "far"]
HIDDEN = (*WORDS.values(), "canary", "odd key", "owner")
FOUND = [PlayerAction("go", {"to": "middle"}), PlayerAction("go", {"to": "far"}), PlayerAction("search", {})]


def scene(*actions: PlayerAction, viewer: str | None = None) -> NarrationContext:
    return scene_of(as_bytes(QUIET), actions or [PlayerAction("wait", {})], viewer=viewer, spoken="words")


def asked(about: NarrationContext) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(build_messages(about, None)[-1].text)
    return told


def everything_of(about: NarrationContext) -> str:
    """Return whatever a model reads of a turn."""
    tools = json.dumps(
        [[one.tool.description, dict(one.tool.input_schema)] for one in scenario_tools(about.spec)]
    )
    prompts = [
        message.text
        for played in (None, about.speculation.preview())
        for message in build_messages(about, played)
    ]
    facts = json.dumps(collect_facts(about, about.speculation.preview()))
    return "\n".join([render_system_text(about), tools, facts, *prompts])


@pytest.mark.parametrize("viewer", [None, "me", "beta"])
def test_no_prompt_and_no_tool_has_what_is_not_there_yet(viewer: str | None) -> None:
    text = everything_of(scene(viewer=viewer)).replace("canary-secret" if viewer == "beta" else "-", "")
    assert not [word for word in HIDDEN if word in text]


def test_a_revealed_clue_is_in_the_facts_and_in_the_view() -> None:
    about = scene(*FOUND, viewer="me")
    told = asked(about)
    text = told["view"]["clues"]["mark"]
    assert text in (WORDS["first"], WORDS["second"])
    assert [change["after"] for change in told["facts"]["changes"] if "clues" in change["path"]] == [text]
    others = {*WORDS.values()} - {text}
    assert not [word for word in others if word in everything_of(about)]


@pytest.mark.parametrize("start", [12, 0])
def test_only_the_epilogue_of_the_run_is_told_and_only_at_its_end(start: int) -> None:
    texts = {"first": "epilogue-first", "second": "epilogue-second"}
    state = {"a": start, "b": 2, "hidden": {"owner": "first"}}
    ending = story(random_events=[], state=state, epilogues={"out": {"deal": "owner", "texts": texts}})
    about = scene_of(as_bytes(ending), [PlayerAction("wait", {})], viewer="me", spoken="words")
    owner = about.speculation.preview().tree["hidden"]["owner"]
    told = [text for text in texts.values() if text in everything_of(about)]
    assert told == ([] if start else [texts[owner]])
    facts = collect_facts(about, about.speculation.preview())
    assert facts.get("epilogue") == (None if start else texts[owner])
    assert "epilogue" not in facts["status"]
    secrets = collect_secrets(about)
    assert texts[owner] not in secrets


def test_the_current_place_and_who_is_there_are_told() -> None:
    assert asked(scene(viewer="me"))["place"] == {
        "id": "near",
        "name": "Near",
        "description": "Wide.",
        "exits": ["middle"],
        "here": [],
    }
    moved = asked(scene(FOUND[0], viewer="me"))["place"]
    expected = {"id": "middle", "exits": NEAR_AND_FAR, "here": ["beta", "gamma"], "from": "Near"}
    assert moved == expected
    assert asked(scene(viewer="beta"))["place"]["here"] == ["gamma"]
    assert "place" not in asked(scene())


def test_a_move_of_another_tells_who_came_and_who_left() -> None:
    came = describe_place(QUIET, "me", {"places": {"me": "far", "beta": "far"}}, {"places": {"me": "far"}})
    assert came is not None
    assert (came["here"], came["arrived"]) == (["beta"], ["beta"])
    before = {"places": {"me": "far", "beta": "far"}}
    went = describe_place(QUIET, "me", {"places": {"me": "far", "beta": "near"}}, before)
    assert went is not None
    assert (went["here"], went["left"]) == ([], ["beta"])


async def test_a_move_by_words_tells_the_new_place_with_the_result_of_its_action() -> None:
    about = scene_of(as_bytes(QUIET), [], viewer="me", spoken="I go on.")
    _, gateway = await played(calling(("action:go", {"to": "middle"})), outcome("Told."), about=about)
    ((result, _),) = results(gateway)
    assert result["world"]["place"] == {
        "id": "middle",
        "exits": NEAR_AND_FAR,
        "here": ["beta", "gamma"],
        "from": "Near",
    }


async def test_a_promise_of_the_turn_is_told_with_its_terms() -> None:
    about = scene_of(as_bytes(QUIET), [], viewer="me", spoken="I promise it.")
    _, gateway = await played(calling(("action:pledge", {})), outcome("Told."), about=about)
    ((result, _),) = results(gateway)
    promise = {"by": "me", "to": "beta", "terms": WORDS["help"], "due": 2, "status": "open"}
    assert result["world"]["promises"] == [promise]


async def test_a_result_without_a_move_tells_no_place() -> None:
    about = scene_of(as_bytes(QUIET), [], viewer="me", spoken="I wait.")
    _, gateway = await played(calling(("action:wait", {})), outcome("Told."), about=about)
    ((result, _),) = results(gateway)
    assert "place" not in result["world"]


def test_a_long_description_of_a_place_is_whole() -> None:
    places = {**QUIET["places"], "near": {**QUIET["places"]["near"], "description": "A wall. " * 110}}
    about = scene_of(as_bytes({**QUIET, "places": places}), [PlayerAction("wait", {})], viewer="me")
    assert asked(about)["place"]["description"] == "A wall. " * 110


def test_statements_and_promises_are_told_once_they_are_made() -> None:
    assert not {"said", "promises"} & asked(scene(viewer="me")).keys()
    told = asked(scene(PlayerAction("ask", {}), PlayerAction("pledge", {}), viewer="me"))
    assert told["said"] == [{"by": "beta", "text": WORDS["claim"]}]
    assert told["promises"] == [
        {"by": "me", "to": "beta", "terms": WORDS["help"], "due": 2, "status": "open"}
    ]


def test_an_action_says_that_it_moves_and_that_it_happens_once() -> None:
    tools = {one.action_id: one.tool.description for one in scenario_tools(QUIET)}
    assert tools["go"] == "go. Effects: me moves to to."
    assert tools["search"] == 'search. Only when places.me = "far". Only once. Costs: a -1.'
    assert tools["name"] == "name. Has a precondition on what has been found out. Effects: b +5."
    assert tools["ask"] == "ask."


def test_a_graph_shows_everything() -> None:
    graph = build_graph(QUIET)
    edges = {(edge.source, edge.target) for edge in graph.edges}
    assert {("/actions/1", "state.clues.mark"), ("/actions/7", "state.clues.mark")} <= edges
    assert ("/win_conditions/0", "state.statements.claim") in edges
