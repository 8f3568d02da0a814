"""Stories and links: what a reader of a session gets, from one point of view and no other."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from support.servers.edge import EdgeClient, serving_edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.servers.edge import SseEvent

pytestmark = pytest.mark.asyncio(loop_scope="package")

SPEC: dict[str, Any] = json.loads(Path("examples/story.json").read_text(encoding="utf-8"))
HIDDEN = (
    "Beta's secret",
    "to keep the store open",
    "the hidden sum",
    "the sum of beta",
    "scratches",
    "solutions",
)


def _told_spec() -> dict[str, Any]:
    """Return a specification with texts for every audience."""
    spec: dict[str, Any] = copy.deepcopy(SPEC)
    spec["entities"][0]["description"] = "As all see it."
    spec["entities"][1] |= {"playable": True, "secret": "Beta's secret"}
    spec["state"]["hidden"]["sum"] = 3
    return spec | {
        "id": "told",
        "state": spec["state"] | {"private": {"beta": {"sum": 4}}},
        "opening": "It begins.",
        "epilogues": {"late": "The day is over."},
        "labels": {
            "state.time": {
                "name": "Time",
                "unit": "h",
                "bands": [{"upto": 4, "word": "late"}, {"word": "early"}],
            },
            "state.hidden.sum": {"name": "the hidden sum"},
            "state.private.beta.sum": {"name": "the sum of beta"},
        },
    }


async def _session(edge: EdgeClient, **body: Any) -> str:
    spec = _told_spec()
    status, compiled = await edge.post("/scenarios/told/compile", spec)
    assert status == 200, compiled
    status, session = await edge.post("/sessions", {"scenario_id": compiled["scenario_id"], **body})
    assert status == 201, session
    return str(session["session_id"])


async def test_a_story_has_what_its_reader_may_know(edge: EdgeClient) -> None:
    session_id = await _session(edge, pov="me")
    status, story = await edge.get(f"/sessions/{session_id}/story?pov=me")
    assert status == 200
    assert (story["premise"][:12], story["opening"]) == ("Three people", "It begins.")
    assert story["labels"]["state.time"]["bands"][0] == {"upto": 4, "word": "late"}
    assert story["bounds"] == {"state.trust": {"min": 0, "max": 10}}
    assert story["places"]["north"] == {"name": "North room"}
    assert story["entities"][0]["description"] == "As all see it."
    assert "ending" not in story
    text = json.dumps(story)
    assert not [secret for secret in HIDDEN if secret in text]
    _, other = await edge.get(f"/sessions/{session_id}/story?pov=beta")
    assert "state.private.beta.sum" in other["labels"]


async def test_the_story_of_an_ended_run_tells_what_decided_it(edge: EdgeClient) -> None:
    session_id = await _session(edge)
    status = {"kind": "ongoing"}
    while status["kind"] == "ongoing":
        events = await _play(edge, f"/sessions/{session_id}/turns", actions=[])
        status = events[-1].data["status"]
    _, story = await edge.get(f"/sessions/{session_id}/story")
    assert story["ending"] == {"epilogue": "The day is over.", "paths": ["state.time"]}


async def test_the_epilogue_is_that_of_the_truth_of_the_run_and_none_is_told_before(edge: EdgeClient) -> None:
    texts = {owner: f"epilogue of {owner}" for owner in ("beta", "gamma", "delta")}
    spec = _told_spec() | {"id": "dealt", "epilogues": {"late": {"deal": "owner", "texts": texts}}}
    status, compiled = await edge.post("/scenarios/dealt/compile", spec)
    assert status == 200, compiled
    program = engine.compile(json.dumps(spec).encode())
    for seed in (1, 3, 4):
        owner = program.new_state(seed).tree()["hidden"]["owner"]
        body = {"scenario_id": compiled["scenario_id"], "seed": seed}
        _, session = await edge.post("/sessions", body)
        path = f"/sessions/{session['session_id']}"
        while True:
            events = await _play(edge, f"{path}/turns", actions=[])
            (_, session), (_, story) = await edge.get(path), await edge.get(f"{path}/story")
            told = json.dumps([session, story, [event.data for event in events]])
            if session["status"]["kind"] != "ongoing":
                break
            assert "epilogue of" not in told
        assert session["status"]["epilogue"] == story["ending"]["epilogue"] == f"epilogue of {owner}"
        assert events[-1].data["status"]["epilogue"] == f"epilogue of {owner}"
        others = [text for text in texts.values() if text != texts[owner]]
        assert not [text for text in others if text in told]


async def test_a_link_opens_one_point_of_view_and_no_other(edge: EdgeClient) -> None:
    session_id = await _session(edge, pov="me")
    status, link = await edge.post(f"/sessions/{session_id}/links", {"pov": ""})
    assert (status, link["path"]) == (201, f"/#/watch/{link['token']}")
    assert len(link["token"]) >= 32
    status, opened = await edge.get(f"/links/{link['token']}?pov=beta")
    assert status == 200
    assert "pov_entity_id" not in opened["session"]
    assert "private" not in opened["session"]["state"]
    assert not {"seed", "usage", "narrator"} & set(opened["session"])
    await _play(edge, f"/sessions/{session_id}/turns", pov="me")
    followed = await _first(edge.events(f"/links/{link['token']}/events?pov=me", method="GET"), "diff")
    assert "state.time" in json.dumps(followed.data["changes"])
    status, problem = await edge.post(f"/links/{link['token']}/turns", {})
    assert (status, problem["code"]) == (409, "NOT_YOUR_TURN")
    status, problem = await edge.get("/links/unknown")
    assert (status, problem["code"]) == (404, "NOT_FOUND")
    status, problem = await edge.post(f"/sessions/{session_id}/links", {"pov": "gamma"})
    assert (status, problem["code"]) == (400, "NOT_PLAYABLE")


@pytest.mark.parametrize("order", ["rotating", "simultaneous"])
async def test_a_link_of_a_seat_plays_it(edge: EdgeClient, order: str) -> None:
    seats = [{"seat_id": "one", "entity_id": "me"}, {"seat_id": "two", "entity_id": "beta"}]
    session_id = await _session(edge, seats={"seats": seats, "order": order})
    _, link = await edge.post(f"/sessions/{session_id}/links", {"seat_id": "one"})
    _, other = await edge.post(f"/sessions/{session_id}/links", {"seat_id": "two"})
    _, opened = await edge.get(f"/links/{other['token']}")
    assert (opened["seat_id"], opened["session"]["pov_entity_id"]) == ("two", "beta")
    # A body cannot choose another seat.
    body = {"seat_id": "two", "pov": "beta", "actions": [{"action_id": "go", "params": {"to": "middle"}}]}
    if order == "rotating":
        events = await _play(edge, f"/links/{link['token']}/turns", **body)
        assert events[-1].name == "diff"
    else:
        status, waiting = await edge.post(f"/links/{link['token']}/turns", body)
        assert (status, waiting) == (202, {"waiting_seat_ids": ["two"]})
        status, waiting = await edge.post(f"/links/{other['token']}/turns", {})
        assert (status, waiting) == (202, {})
    for wrong in ({"seat_id": "three"}, {"seat_id": "one", "pov": "beta"}):
        status, problem = await edge.post(f"/sessions/{session_id}/links", wrong)
        assert (status, problem["code"]) == (400, "INVALID_ARGUMENT")


async def test_a_generation_reports_its_certificate_without_rules(edge: EdgeClient) -> None:
    stream = edge.events(
        "/scenarios/generate", {"description": "alpha keeps a beta"}, accept="text/event-stream"
    )
    events = [event async for event in stream]
    assert [event.name for event in events[-2:]] == ["result", "spec"]
    result = events[-2].data
    assert result["certificate"]["verdict"] == "certified"
    assert {"persona", "lost"} <= set(result["certificate"]["personas"][0])
    assert result["authored_without_model"]
    assert "effects" not in json.dumps(result)
    assert "proofs" not in json.dumps(result)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_link_needs_no_token_and_opens_nothing_else(tmp_path: Path) -> None:
    async with serving_edge(tmp_path, edge_token="t" * 40) as edge:
        edge.http.headers["authorization"] = f"Bearer {'t' * 40}"
        session_id = await _session(edge)
        _, link = await edge.post(f"/sessions/{session_id}/links", {})
        del edge.http.headers["authorization"]
        status, _ = await edge.get(f"/links/{link['token']}")
        assert status == 200
        for path in (
            f"/sessions/{session_id}",
            f"/sessions/{session_id}/story",
            "/links",
            f"/links/../sessions/{session_id}",
        ):
            status, problem = await edge.get(path)
            assert (status, problem["code"]) == (401, "TOKEN_REQUIRED")


async def _play(edge: EdgeClient, path: str, **body: Any) -> list[SseEvent]:
    body = {"actions": [{"action_id": "go", "params": {"to": "middle"}}]} | body
    return [event async for event in edge.events(path, body)]


async def _first(events: AsyncIterator[SseEvent], name: str) -> SseEvent:
    async for event in events:
        if event.name == name:
            return event
    raise AssertionError(name)
