"""The four routes: from a text to a streamed turn, and what ends a stream early."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiohttp
import pytest

from peripety.edge.app import serve_edge
from support.servers.apps import config_for
from support.servers.edge import EdgeClient, SseEvent, serving_edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio(loop_scope="package")

SPEC: dict[str, Any] = json.loads(Path("examples/scenario.json").read_text(encoding="utf-8"))
REFERENCE = Path("docs/reference/http.md").read_text(encoding="utf-8")
PAGE = Path("docs/how-to/use-http.md").read_text(encoding="utf-8")
TURN = {"actions": [{"action_id": "gather"}]}


def _spec(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(SPEC) | changes


async def test_a_text_becomes_a_turn_over_four_routes(edge: EdgeClient) -> None:
    status, spec = await edge.post(
        "/scenarios/generate",
        {"description": "alpha keeps a beta from running out", "seed": 5, "level": "dry_run"},
    )
    assert (status, spec["seed"], spec["spec_version"][0]) == (200, 5, "1")
    status, compiled = await edge.post(f"/scenarios/{spec['id']}/compile")
    assert status == 200
    assert set(compiled) >= {"scenario_id", "spec_hash", "fail_rate", "findings", "certificate"}
    status, session = await edge.post("/sessions", {"scenario_id": compiled["scenario_id"], "seed": 9})
    assert (status, session["seed"], session["spec_hash"]) == (201, 9, compiled["spec_hash"])
    path = f"/sessions/{session['session_id']}"
    events = [event async for event in edge.events(f"{path}/turns", {"input": "I look around."})]
    assert [events[0].name, events[-1].name] == ["accepted", "diff"]
    prose = "".join(event.data["text"] for event in events if event.name == "narrative_chunk")
    assert prose == events[-1].data["narrative"]
    status, after = await edge.get(path)
    assert (status, after["turn"]) == (200, 1)
    assert after["state_hash"] == events[-1].data["state_hash"]


async def test_a_language_can_be_asked_for(edge: EdgeClient) -> None:
    body = {"description": "alpha keeps a beta from running out", "level": "static", "language": "xa"}
    status, spec = await edge.post("/scenarios/generate", body)
    assert status == 200
    assert "no plot in that language" in spec["premise"]["text"]
    status, problem = await edge.post("/scenarios/generate", {**body, "language": "a tag?"})
    assert (status, problem["violations"][0]["field"]) == (400, "language")


async def test_a_request_id_is_for_one_turn(edge: EdgeClient) -> None:
    path = f"/sessions/{await edge.start_session(SPEC)}/turns"
    first = TURN | {"request_id": str(uuid4())}
    events = [event async for event in edge.events(path, first)]
    assert [event async for event in edge.events(path, first)] == events
    status, problem = await edge.post(path, first | {"actions": [{"action_id": "mend"}]})
    assert (status, problem["code"]) == (409, "REQUEST_ID_REUSED")


async def test_the_progress_of_a_generation_can_be_followed(edge: EdgeClient) -> None:
    body = {"description": "alpha and beta share a gamma", "level": "dry_run"}
    stream = edge.events("/scenarios/generate", body, accept="text/event-stream")
    events = [event async for event in stream]
    assert events[0].name == "progress"
    assert events[-1].name == "spec"
    status, same = await edge.post("/scenarios/generate", body)
    assert (status, same) == (200, events[-1].data)
    # Drafts show the rules to the person who is about to play.
    assert all("effects" not in json.dumps(event.data) for event in events[:-1])


async def test_a_generation_goes_on_without_its_client(edge: EdgeClient) -> None:
    body = {"description": "delta is short of epsilon", "level": "dry_run"}
    status, run = await edge.post("/scenarios/generate", body, prefer="respond-async")
    assert status == 202
    path = f"/scenarios/runs/{run['run_id']}"
    events = [event async for event in edge.events(f"{path}/events", method="GET")]
    assert [event.name for event in events[-2:]] == ["result", "spec"]
    status, state = await edge.get(path)
    assert (status, state["state"]) == (200, "completed")
    headers = {"last-event-id": events[2].event_id}
    rest = [event async for event in edge.events(f"{path}/events", method="GET", **headers)]
    assert rest == events[3:]
    status, _ = await edge.post(f"/scenarios/{events[-1].data['id']}/compile")
    assert status == 200
    status, problem = await edge.get(f"/scenarios/runs/{uuid4()}")
    assert (status, problem["code"]) == (404, "UNKNOWN_RUN")


async def test_changes_of_a_turn_are_in_its_last_event(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    events = [event async for event in edge.events(f"/sessions/{session_id}/turns", TURN)]
    action = next(event for event in events if event.name == "action")
    assert action.data["accepted"]
    changes = [
        change
        for event in events
        if "changes" in event.data and event.name != "diff"
        for change in event.data["changes"]
    ]
    assert events[-1].data["changes"] == changes
    assert changes[0] == {
        "path": "state.reserve",
        "op": "inc",
        "before": 12,
        "after": 14,
        "cause": {"kind": "action", "id": "gather"},
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"negativity_budget": {"min_fail_rate": 0.99, "max_fail_rate": 1.0}}, "TOO_EASY"),
        ({"loss_conditions": []}, ""),
    ],
)
async def test_a_specification_that_is_not_accepted_says_why(
    edge: EdgeClient, change: dict[str, Any], code: str
) -> None:
    status, problem = await edge.post("/scenarios/refused/compile", _spec(id="refused", **change))
    assert (status, problem["status"], problem["code"]) == (422, 422, "SPEC_INVALID")
    assert problem["findings"]
    assert not code or code in {finding["code"] for finding in problem["findings"]}


async def test_an_id_of_another_document_is_a_conflict(edge: EdgeClient) -> None:
    _, spec = await edge.post("/scenarios/generate", {"description": "one", "level": "dry_run"})
    status, problem = await edge.post(f"/scenarios/{spec['id']}/compile", spec | {"name": "other"})
    assert (status, problem["code"]) == (409, "SCENARIO_ID_TAKEN")
    status, problem = await edge.post("/scenarios/other/compile", spec)
    assert (status, problem["code"]) == (400, "OTHER_SPEC")
    status, problem = await edge.post("/scenarios/unknown/compile")
    assert (status, problem["code"]) == (404, "SCENARIO_NOT_FOUND")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/sessions", {"scenario_id": "unknown"}, 404, "SCENARIO_NOT_FOUND"),
        ("/sessions", {}, 400, "INVALID_ARGUMENT"),
        ("/sessions", {"scenario_id": "a", "seed": -1}, 400, "INVALID_ARGUMENT"),
        ("/sessions", {"scenario_id": "a", "other": 1}, 400, "INVALID_ARGUMENT"),
        ("/sessions/00000000-0000-4000-8000-000000000000/turns", {}, 404, "UNKNOWN_SESSION"),
        ("/scenarios/generate", {"description": 5}, 400, "INVALID_ARGUMENT"),
        ("/nowhere", {}, 404, "METHOD_NOT_FOUND"),
    ],
)
async def test_a_wrong_request_is_a_problem_document(
    edge: EdgeClient, path: str, body: Any, status: int, code: str
) -> None:
    got, problem = await edge.post(path, body)
    assert (got, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:peripety:error:{code}"
    assert problem["detail"]


async def test_a_field_that_is_wrong_is_named(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    body = {"actions": [{"action_id": "gather", "params": {"a": None}}]}
    status, problem = await edge.post(f"/sessions/{session_id}/turns", body)
    assert (status, problem["violations"][0]["field"]) == (400, "actions[0].params.a")


async def test_a_turn_goes_on_without_its_client_and_is_resumed(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    path, body = f"/sessions/{session_id}/turns", TURN | {"request_id": str(uuid4())}
    seen: list[SseEvent] = []
    async for event in edge.events(path, body):
        seen.append(event)
        if len(seen) == 2:
            break
    headers = {"last-event-id": seen[-1].event_id}
    rest = [event async for event in edge.events(path, body, **headers)]
    whole = [event async for event in edge.events(path, body)]
    assert seen + rest == whole
    assert (await edge.get(f"/sessions/{session_id}"))[1]["turn"] == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_turn_is_resumed_from_its_record_by_another_edge(tmp_path: Path) -> None:
    async with serving_edge(tmp_path) as first:
        session_id = await first.start_session(SPEC)
        path, body = f"/sessions/{session_id}/turns", TURN | {"request_id": str(uuid4())}
        whole = [event async for event in first.events(path, body)]
        async with aiohttp.ClientSession() as http, _second_edge(tmp_path, first) as url:
            second = EdgeClient(url.rstrip("/"), http)
            for position in (1, len(whole) - 1):
                headers = {"last-event-id": whole[position - 1].event_id}
                rest = [event async for event in second.events(path, body, **headers)]
                assert rest == whole[position:]
            assert [event async for event in second.events(path, body)] == whole


def _second_edge(tmp_path: Path, first: EdgeClient) -> Any:
    return serve_edge(config_for(tmp_path, edge_listen="127.0.0.1:0"), first.services_address)


async def _collect_until(events: AsyncIterator[SseEvent], name: str, count: int = 1) -> list[SseEvent]:
    found = []
    async for event in events:
        found.append(event)
        count -= event.name == name
        if count == 0:
            break
    return found


async def test_followers_see_every_event_once(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    path = f"/sessions/{session_id}/events"
    followers = [
        asyncio.ensure_future(_collect_until(edge.events(path, method="GET"), "diff", 2)) for _ in range(5)
    ]
    played: list[SseEvent] = []
    for _ in range(2):
        played += [event async for event in edge.events(f"/sessions/{session_id}/turns", TURN)]
    for follower in followers:
        assert await asyncio.wait_for(follower, 60) == played
    middle, rest = played[len(played) // 2], played[len(played) // 2 + 1 :]
    turns = sum(event.name == "diff" for event in rest)
    again = edge.events(path, method="GET", **{"last-event-id": middle.event_id})
    assert await _collect_until(again, "diff", turns) == rest
    parameter = edge.events(f"{path}?after={middle.event_id}", method="GET")
    assert await _collect_until(parameter, "diff", turns) == rest


async def test_a_quiet_stream_opens_at_once(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    async with edge.http.get(f"{edge.url}/sessions/{session_id}/events") as response:
        assert response.status == 200
    status, problem = await edge.get(f"/sessions/{uuid4()}/events")
    assert (status, problem["code"]) == (404, "UNKNOWN_SESSION")


async def test_a_socket_plays_and_follows(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    async with edge.http.ws_connect(f"{edge.url}/sessions/{session_id}/socket") as socket:
        await socket.send_json({"action": "gather"})
        refused = await socket.receive_json()
        assert (refused["event"], refused["data"]["violations"][0]["field"]) == ("error", "action")
        await socket.send_json(TURN)
        frames: list[Any] = []
        while not frames or frames[-1]["event"] != "diff":
            frames.append(await socket.receive_json())
        await socket.send_json(TURN | {"expected_turn": 1})
        stale = await socket.receive_json()
    assert frames[0]["event"] == "accepted"
    assert frames[-1]["id"].startswith(f"{len(frames)}.")
    assert (stale["event"], stale["data"]["code"]) == ("error", "STALE_TURN")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
async def test_the_scripts_of_the_page_run(edge: EdgeClient, tmp_path: Path) -> None:
    scripts = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    assert len(scripts[0].splitlines()) <= 10
    script = "".join(scripts)
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, cwd=tmp_path, env=os.environ | {"URL": edge.url}, stdout=-1
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().count("event: diff\n") == 1
    assert output.decode().count("/#/watch/") == 1


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
@pytest.mark.slow(reason="some thirty calls of curl")
async def test_the_examples_of_the_reference_run(edge: EdgeClient, tmp_path: Path) -> None:
    """Each example prints what the page shows after it."""
    examples = re.findall(r"```bash\n(.*?)```\n\n```text\n(.*?)```", REFERENCE, re.DOTALL)
    assert len(examples) == REFERENCE.count("```bash\n") >= 10
    mark = "-- end of example --"
    script = "".join(f"{commands}echo '{mark}'\n" for commands, _ in examples)
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", script, cwd=tmp_path, env=os.environ | {"URL": edge.url}, stdout=-1
    )
    output, _ = await process.communicate()
    printed = output.decode().split(f"{mark}\n")
    assert printed == [*(shown for _, shown in examples), ""]
    assert process.returncode == 0
