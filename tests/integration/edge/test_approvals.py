"""Approvals over HTTP: the edge forwards address and token of an enforcement point, and stores neither."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from peripety.cli.policy_approvals import serve_approvals
from peripety.engine import Decision, DecisionResult, ToolRequest
from peripety.policy.enforcement.approval_file import ApprovalFile
from peripety.policy.enforcement.approvals import ApprovalOutcome, ApprovalQueue
from support.servers.apps import new_id
from support.servers.edge import EdgeClient, serving_edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="package")

PATH = "/rpc/ApprovalService"
ESCALATED = DecisionResult(Decision.ESCALATE, "r1", by_invariant=False, reasons=("so says r1",))


class Point:
    """An enforcement point, called over HTTP."""

    def __init__(self, edge: EdgeClient, queue: ApprovalQueue, file: ApprovalFile) -> None:
        self.edge, self.queue, self.file = edge, queue, file

    async def post(self, method: str, body: Any = None, **changes: str) -> tuple[int, Any]:
        headers = {
            "x-peripety-enforcement-point": self.file.address,
            "x-peripety-enforcement-token": self.file.token,
        }
        return await self.edge.post(f"{PATH}/{method}", body, **(headers | changes))

    async def ask(self) -> asyncio.Task[ApprovalOutcome]:
        request = ToolRequest("alpha", "one", {"number": 1, "word": "w"}, ("first",))
        asked = asyncio.ensure_future(self.queue.ask(request, ESCALATED, ("/word",)))
        await asyncio.sleep(0)  # the first step of the task
        return asked


@pytest_asyncio.fixture(loop_scope="package")
async def point(edge: EdgeClient, tmp_path: Path) -> AsyncIterator[Point]:
    queue, path = ApprovalQueue(60, time.time), tmp_path / "point.json"
    async with serve_approvals(queue, path):
        yield Point(edge, queue, ApprovalFile.read(path))


async def test_a_waiting_call_is_read_and_answered_once(point: Point) -> None:
    asked = await point.ask()
    status, listed = await point.post("ListApprovals")
    (call,) = listed["approvals"]
    assert (status, call["request"]["arguments"], call["reasons"]) == (
        200,
        {"number": 1, "word": "w"},
        ["so says r1"],
    )
    assert call["redacted_paths"] == ["/word"]
    answer = {name: call[name] for name in ("approval_id", "call_hash")} | {"request_id": new_id()}
    for _ in range(2):  # the second click of the same answer
        assert await point.post("ApproveCall", answer) == (200, {})
    assert await asked is ApprovalOutcome.APPROVED
    status, problem = await point.post("DenyCall", answer | {"request_id": new_id()})
    assert (status, problem["code"]) == (404, "APPROVAL_NOT_FOUND")
    assert await point.post("ListApprovals") == (200, {})


async def test_a_call_is_denied_and_another_hash_answers_nothing(point: Point) -> None:
    asked = await point.ask()
    (call,) = (await point.post("ListApprovals"))[1]["approvals"]
    wrong = {"approval_id": call["approval_id"], "call_hash": "0" * 64}
    status, problem = await point.post("ApproveCall", wrong)
    assert (status, problem["code"], asked.done()) == (409, "APPROVAL_MISMATCH", False)
    assert (await point.post("DenyCall", wrong | {"call_hash": call["call_hash"]}))[0] == 200
    assert await asked is ApprovalOutcome.DENIED


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("example.org:443", 409, "ADDRESS_REFUSED"),
        ("10.0.0.1:50051", 409, "ADDRESS_REFUSED"),
        ("169.254.169.254:80", 409, "ADDRESS_REFUSED"),
        ("[::ffff:10.0.0.1]:80", 409, "ADDRESS_REFUSED"),
        ("0.0.0.0:80", 409, "ADDRESS_REFUSED"),
        ("localhost.example.org:80", 409, "ADDRESS_REFUSED"),
        ("127.0.0.1@example.org:80", 409, "ADDRESS_REFUSED"),
        ("unix:///run/a.sock", 400, "INVALID_ARGUMENT"),
        ("dns:///example.org:80", 400, "INVALID_ARGUMENT"),
        ("127.0.0.1:80/x", 400, "INVALID_ARGUMENT"),
        ("127.0.0.1:80,10.0.0.1:80", 400, "INVALID_ARGUMENT"),
        ("127.0.0.1", 400, "INVALID_ARGUMENT"),
        ("", 400, "INVALID_ARGUMENT"),
    ],
)
async def test_the_edge_connects_to_no_other_machine(
    point: Point, monkeypatch: pytest.MonkeyPatch, address: str, status: int, code: str
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("peripety.edge.approval_routes.open_channel", opened.append)
    found, problem = await point.post("ListApprovals", **{"x-peripety-enforcement-point": address})
    assert (found, problem["code"], opened) == (status, code, [])


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "example.org"}, 421, "HOST_REFUSED"),
        ({"origin": "https://example.org"}, 403, "ORIGIN_REFUSED"),
        ({"content-type": "text/plain"}, 415, "MEDIA_TYPE_UNSUPPORTED"),
        ({"x-peripety-enforcement-token": "wrong"}, 409, "TOKEN_REQUIRED"),
        ({"x-peripety-enforcement-token": ""}, 400, "INVALID_ARGUMENT"),
        ({"x-peripety-enforcement-token": "two words"}, 400, "INVALID_ARGUMENT"),
    ],
)
async def test_another_site_or_a_wrong_token_reads_and_answers_nothing(
    point: Point, headers: dict[str, str], status: int, code: str
) -> None:
    asked = await point.ask()
    (waiting,) = point.queue.pending
    answer = {"approval_id": waiting.approval_id, "call_hash": waiting.call_hash}
    for method, body in (("ListApprovals", {}), ("ApproveCall", answer)):
        found, problem = await point.post(method, body, **headers)
        assert (found, problem["code"]) == (status, code)
    assert not asked.done()
    asked.cancel()


async def test_a_page_of_another_site_gets_no_permission_to_send_a_token(point: Point) -> None:
    wanted = {
        "origin": point.edge.url,
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-peripety-enforcement-token",
    }
    url = f"{point.edge.url}{PATH}/ListApprovals"
    async with point.edge.http.options(url, headers=wanted) as response:
        assert "enforcement" not in response.headers.get("access-control-allow-headers", "")


async def test_a_server_that_is_no_enforcement_point_is_told(point: Point) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = f"127.0.0.1:{listening.getsockname()[1]}"
    for address in (closed, point.edge.services_address):
        status, problem = await point.post("ListApprovals", **{"x-peripety-enforcement-point": address})
        assert (status, problem["code"]) == (503, "ENFORCEMENT_POINT_UNAVAILABLE")
        assert address in problem["detail"]
    status, problem = await point.post("WatchApprovals")
    assert (status, problem["code"]) == (404, "METHOD_NOT_FOUND")


async def test_the_token_reaches_no_log_and_no_answer(
    point: Point, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "visible-if-logged"  # noqa: S105 - not a token of anything
    token, address = "x-peripety-enforcement-token", "x-peripety-enforcement-point"
    changes: tuple[dict[str, str], ...] = (
        {},
        {token: secret},
        {token: f"{secret} {secret}"},
        {token: secret, address: "127.0.0.1:1"},
        {token: secret, address: "10.0.0.1:1"},
    )
    with caplog.at_level(logging.DEBUG):
        told = [str(await point.post("ListApprovals", **change)) for change in changes]
        told.append(str(await point.post("ApproveCall", {"nothing": 1})))
    texts = "".join((*told, caplog.text, *capfd.readouterr()))
    assert secret not in texts
    assert point.file.token not in texts


async def test_an_open_edge_forwards_to_configured_addresses_only(point: Point, tmp_path: Path) -> None:
    port = point.file.address.rpartition(":")[2]
    for allowed, status in (((), 409), ((f"127.0.0.1:{port}",), 200), (("127.0.0.1:0",), 200)):
        settings = {"edge_hosts": ("edge.example.org",), "edge_enforcement_points": allowed}
        async with serving_edge(tmp_path, **settings) as edge:
            assert (await Point(edge, point.queue, point.file).post("ListApprovals"))[0] == status
