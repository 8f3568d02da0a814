"""Every RPC over HTTP and JSON, over Connect, and in the OpenAPI document."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # ships no types

from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2
from peripety.edge.calls import approval_methods, rpc_methods

if TYPE_CHECKING:
    from support.servers.edge import EdgeClient

pytestmark = pytest.mark.asyncio(loop_scope="package")

SPEC: dict[str, Any] = json.loads(Path("examples/scenario.json").read_text(encoding="utf-8"))
SESSIONS = "/peripety.api.session.v1.SessionService"
SCENARIOS = "/peripety.api.scenario.v1.ScenarioService"


async def test_a_call_takes_and_returns_documents_as_json(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    status, got = await edge.post("/rpc/SessionService/GetSession", {"session_id": session_id})
    assert (status, got["session"]["state"]) == (200, SPEC["state"])
    status, problem = await edge.post("/rpc/SessionService/GetSession", {"session": session_id})
    assert (status, problem["violations"][0]["field"]) == (400, "session")
    status, problem = await edge.post("/rpc/SessionService/Nothing", {})
    assert (status, problem["code"]) == (404, "METHOD_NOT_FOUND")


async def test_a_request_id_is_made_or_taken_from_the_header(edge: EdgeClient) -> None:
    session_id, key = await edge.start_session(SPEC), str(uuid4())
    body = {"session_id": session_id}
    path = "/rpc/SessionService/ForkSession"
    forks = [
        (await edge.post(path, body, **headers))[1]["session"]["session_id"]
        for headers in ({"idempotency-key": key}, {"idempotency-key": key}, {})
    ]
    assert forks[0] == forks[1] != forks[2]


async def test_a_stream_of_messages_ends_with_done(edge: EdgeClient) -> None:
    body = [{"items": [{"item_id": "a", "spec": SPEC}, {"item_id": "b", "spec": {"id": 1}}]}]
    events = [event async for event in edge.events("/rpc/ScenarioService/ValidateScenarios", body)]
    assert events[-1].name == "done"
    verdicts = [verdict for event in events[:-1] for verdict in event.data["verdicts"]]
    assert {verdict["item_id"] for verdict in verdicts} == {"a", "b"}


async def test_a_stream_that_fails_ends_with_its_problem(edge: EdgeClient) -> None:
    body = {"session_id": str(uuid4())}
    events = [event async for event in edge.events("/rpc/SessionService/ReplaySession", body)]
    assert [(event.name, event.data["code"]) for event in events] == [("error", "UNKNOWN_SESSION")]


async def test_a_generated_client_calls_by_connect(edge: EdgeClient) -> None:
    session_id = await edge.start_session(SPEC)
    request = session_pb2.GetSessionRequest(session_id=session_id)
    headers = {"content-type": "application/proto"}
    async with edge.http.post(
        f"{edge.url}{SESSIONS}/GetSession", data=request.SerializeToString(), headers=headers
    ) as response:
        assert response.headers["content-type"] == "application/proto"
        got = session_pb2.GetSessionResponse.FromString(await response.read())
    assert json.loads(got.session.state) == SPEC["state"]
    status, as_json = await edge.post(f"{SESSIONS}/GetSession", {"sessionId": session_id})
    assert (status, base64.b64decode(as_json["session"]["state"])) == (200, got.session.state)


async def test_errors_of_connect_have_code_and_details(edge: EdgeClient) -> None:
    status, error = await edge.post(f"{SESSIONS}/GetSession", {"sessionId": str(uuid4())})
    assert (status, error["code"]) == (404, "not_found")
    info = error_details_pb2.ErrorInfo()
    (detail,) = [one for one in error["details"] if one["type"] == "google.rpc.ErrorInfo"]
    info.ParseFromString(base64.b64decode(detail["value"] + "=="))
    assert info.reason == "UNKNOWN_SESSION"
    for body in ({"sessionId": 5}, {"other": 1}):
        status, error = await edge.post(f"{SESSIONS}/GetSession", body)
        assert (status, error["code"]) == (400, "invalid_argument")
    status, error = await edge.post(f"{SESSIONS}/Nothing")
    assert (status, error["code"]) == (404, "not_found")
    status, error = await edge.post(f"{SESSIONS}/WatchSession")
    assert (status, error["code"]) == (501, "unimplemented")
    for timeout, code in (("0", "deadline_exceeded"), ("soon", "invalid_argument")):
        _, error = await edge.post(f"{SESSIONS}/ListSessions", **{"connect-timeout-ms": timeout})
        assert error["code"] == code


def _envelop(data: bytes) -> bytes:
    return struct.pack(">BI", 0, len(data)) + data


def _envelopes(body: bytes) -> list[tuple[int, bytes]]:
    found, position = [], 0
    while position < len(body):
        flags, length = struct.unpack_from(">BI", body, position)
        found.append((flags, body[position + 5 : position + 5 + length]))
        position += 5 + length
    return found


async def test_streams_of_connect_are_envelopes(edge: EdgeClient) -> None:
    request = scenario_pb2.ValidateScenariosRequest()
    request.items.add(item_id="a", spec=json.dumps(SPEC).encode())
    async with edge.http.post(
        f"{edge.url}{SCENARIOS}/ValidateScenarios",
        data=_envelop(request.SerializeToString()) * 2,
        headers={"content-type": "application/connect+proto"},
    ) as response:
        assert response.status == 200
        *messages, end = _envelopes(await response.read())
    verdicts = [
        verdict.item_id
        for _, data in messages
        for verdict in scenario_pb2.ValidateScenariosResponse.FromString(data).verdicts
    ]
    assert verdicts == ["a", "a"]
    assert end == (2, b"{}")
    async with edge.http.post(
        f"{edge.url}{SESSIONS}/ReplaySession",
        data=_envelop(json.dumps({"sessionId": str(uuid4())}).encode()),
        headers={"content-type": "application/connect+json"},
    ) as response:
        ((flags, status),) = _envelopes(await response.read())
    assert (flags, json.loads(status)["error"]["code"]) == (2, "not_found")


@pytest.mark.parametrize("body", [b"\x00", b"\x00\x00\x00\x00\x09ab", b"\x01\x00\x00\x00\x00", b""])
async def test_a_broken_envelope_is_an_error(edge: EdgeClient, body: bytes) -> None:
    async with edge.http.post(
        f"{edge.url}{SESSIONS}/WatchSession", data=body, headers={"content-type": "application/connect+proto"}
    ) as response:
        error = await response.json(content_type=None)
    assert error["code"] in {"invalid_argument", "unimplemented"}


async def test_the_description_has_every_call_and_nothing_of_others(edge: EdgeClient) -> None:
    _, document = await edge.get("/openapi.json")
    wanted = {f"/rpc/{one.short_service}/{one.name}" for one in rpc_methods().values()}
    routes = {"/scenarios/generate", "/scenarios/schema", "/scenarios/{scenario_id}/compile", "/sessions"}
    routes |= {f"/sessions/{{session_id}}{tail}" for tail in ("", "/story", "/turns", "/events", "/links")}
    routes |= {f"/scenarios/runs/{{run_id}}{tail}" for tail in ("", "/events")}
    routes |= {f"/rpc/ApprovalService/{name}" for name in approval_methods()}
    routes |= {f"/links/{{token}}{tail}" for tail in ("", "/turns", "/events")}
    assert set(document["paths"]) == wanted | routes
    schemas = document["components"]["schemas"]
    references = {text.split('"')[0] for text in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert references <= set(schemas)
    async with edge.http.get(f"{edge.url}/docs") as response:
        page = await response.text()
    assert "http" not in page.replace("HTTP", "")
    for path in page.split('src="')[1:]:
        async with edge.http.get(edge.url + path.partition('"')[0]) as response:
            assert response.status == 200
