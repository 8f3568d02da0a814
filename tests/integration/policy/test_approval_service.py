"""ApprovalService, HTTP and their file: one queue behind both, over real loopback connections."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import ApprovalServiceStub
from peripety.cli.policy_approvals import serve_approvals
from peripety.engine import Decision, DecisionResult, ToolRequest
from peripety.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from peripety.policy.enforcement.approval_file import ApprovalFile
from peripety.policy.enforcement.approvals import MAX_WAITING, ApprovalOutcome, ApprovalQueue
from peripety.rpc.channel import open_channel
from support.servers.apps import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.policy.v1.policy_pb2_grpc import ApprovalServiceAsyncStub

ESCALATED = DecisionResult(Decision.ESCALATE, "r1", by_invariant=False, reasons=("so says r1",))


class Point:
    """A served queue."""

    def __init__(self, queue: ApprovalQueue, stub: ApprovalServiceAsyncStub, file: ApprovalFile) -> None:
        self.queue, self.stub, self.file = queue, stub, file
        self.metadata = (("authorization", f"Bearer {file.token}"),)

    async def ask(self, number: int = 1) -> asyncio.Task[ApprovalOutcome]:
        request = ToolRequest("alpha", "one", {"number": number}, ("first",))
        asked = asyncio.ensure_future(self.queue.ask(request, ESCALATED))
        await asyncio.sleep(0)  # the first step of the task
        assert self.queue.pending[-1].request is request
        return asked

    async def list(self, **page: Any) -> pb.ListApprovalsResponse:
        return await self.stub.ListApprovals(pb.ListApprovalsRequest(**page), metadata=self.metadata)

    async def approve(self, approval: pb.PendingApproval, **changes: Any) -> None:
        parts = {"request_id": new_id(), "approval_id": approval.approval_id, "call_hash": approval.call_hash}
        await self.stub.ApproveCall(pb.ApproveCallRequest(**(parts | changes)), metadata=self.metadata)

    async def deny(self, approval: pb.PendingApproval, **changes: Any) -> None:
        parts = {"request_id": new_id(), "approval_id": approval.approval_id, "call_hash": approval.call_hash}
        await self.stub.DenyCall(pb.DenyCallRequest(**(parts | changes)), metadata=self.metadata)


@pytest.fixture
async def point(tmp_path: Path) -> AsyncIterator[Point]:
    queue, path = ApprovalQueue(60, time.time), tmp_path / "point.json"
    async with serve_approvals(queue, path):
        assert path.stat().st_mode & 0o777 == 0o600
        file = ApprovalFile.read(path)
        async with open_channel(file.address) as channel:
            yield Point(queue, ApprovalServiceStub(channel), file)
    assert not path.exists()


async def test_a_waiting_call_is_listed_whole_and_approved_once(point: Point) -> None:
    asked = await point.ask()
    (approval,) = (await point.list()).approvals
    assert (approval.request.tool_name, json.loads(approval.request.arguments)) == ("one", {"number": 1})
    assert ([*approval.request.roles], approval.rule_id, [*approval.reasons]) == (
        ["first"],
        "r1",
        ["so says r1"],
    )
    assert approval.expire_time.ToMicroseconds() - approval.create_time.ToMicroseconds() == 60_000_000
    key = new_id()
    await point.approve(approval, request_id=key)
    assert await asked is ApprovalOutcome.APPROVED
    await point.approve(approval, request_id=key)  # the same request again
    with pytest.raises(AlreadyExistsError):
        await point.deny(approval, request_id=key)
    with pytest.raises(NotFoundError, match="no call waits"):
        await point.approve(approval)
    assert not (await point.list()).approvals


async def test_a_call_is_denied(point: Point) -> None:
    asked = await point.ask()
    await point.deny((await point.list()).approvals[0])
    assert await asked is ApprovalOutcome.DENIED


async def test_an_answer_names_the_exact_call(point: Point) -> None:
    asked = await point.ask(1), await point.ask(2)
    one, two = (await point.list()).approvals
    for wrong in (two.call_hash, "0" * 64, "ü"):
        with pytest.raises(FailedPreconditionError) as found:
            await point.approve(one, call_hash=wrong)
        assert found.value.code == "APPROVAL_MISMATCH"
    for field in ("approval_id", "call_hash", "request_id"):
        with pytest.raises(InvalidArgumentError, match=field):
            await point.approve(one, **{field: ""})
    await point.deny(one)
    await point.approve(two)
    assert [await task for task in asked] == [ApprovalOutcome.DENIED, ApprovalOutcome.APPROVED]


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer x"),), (("authorization", ""),)])
async def test_every_call_needs_the_token(point: Point, metadata: Any) -> None:
    asked = await point.ask()
    (waiting,) = point.queue.pending
    answer = {"request_id": new_id(), "approval_id": waiting.approval_id, "call_hash": waiting.call_hash}
    stub = point.stub
    for call in (
        stub.ListApprovals(pb.ListApprovalsRequest(), metadata=metadata),
        stub.ApproveCall(pb.ApproveCallRequest(**answer), metadata=metadata),
        stub.DenyCall(pb.DenyCallRequest(**answer), metadata=metadata),
        stub.WatchApprovals(pb.WatchApprovalsRequest(), metadata=metadata).read(),
    ):
        with pytest.raises(FailedPreconditionError) as found:
            await call
        assert found.value.code == "TOKEN_REQUIRED"
    assert not asked.done()
    asked.cancel()


async def test_a_watcher_gets_the_waiting_calls_and_each_change(point: Point) -> None:
    first = await point.ask(1)
    events = point.stub.WatchApprovals(pb.WatchApprovalsRequest(), metadata=point.metadata)
    stream = aiter(events)
    one = (await anext(stream)).waiting
    assert json.loads(one.request.arguments) == {"number": 1}
    second = await point.ask(2)
    two = (await anext(stream)).waiting
    assert json.loads(two.request.arguments) == {"number": 2}
    await point.approve(one)
    second.cancel()
    ended = [await anext(stream) for _ in range(2)]
    assert {event.ended.approval_id: event.ended.outcome for event in ended} == {
        one.approval_id: pb.APPROVAL_OUTCOME_APPROVED,
        two.approval_id: pb.APPROVAL_OUTCOME_WITHDRAWN,
    }
    assert [event.sequence for event in ended] == [3, 4]
    assert await first is ApprovalOutcome.APPROVED
    events.cancel()


async def test_lists_are_paged(point: Point) -> None:
    asked = [await point.ask(number) for number in range(3)]
    page = await point.list(page_size=2)
    rest = await point.list(page_size=2, page_token=page.next_page_token)
    assert [len(page.approvals), len(rest.approvals), rest.next_page_token] == [2, 1, ""]
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await point.list(page_token="x")  # noqa: S106 - the token of a page
    for task in asked:
        task.cancel()


async def test_http_answers_the_calls_of_the_same_queue(point: Point) -> None:
    def send(path: str, headers: dict[str, str], body: dict[str, Any] | None = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{point.file.url}{path}", data, headers)  # noqa: S310 - our own server
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - as above
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    asked = await point.ask()
    right = {"authorization": f"Bearer {point.file.token}"}
    for headers in (dict[str, str](), {"authorization": "Bearer x"}, right | {"origin": point.file.url}):
        assert (await asyncio.to_thread(send, "/approvals", headers))[0] == 401
    status, (call,) = await asyncio.to_thread(send, "/approvals", right)
    assert (status, call["arguments"], call["rule_id"]) == (200, {"number": 1}, "r1")
    body = {"approved": True, "call_hash": call["call_hash"]}
    assert (await asyncio.to_thread(send, f"/approvals/{call['approval_id']}", right, body))[0] == 200
    assert await asked is ApprovalOutcome.APPROVED
    assert (await asyncio.to_thread(send, f"/approvals/{call['approval_id']}", right, body))[0] == 409


async def test_a_call_that_no_person_answers_expires(point: Point) -> None:
    queue = ApprovalQueue(0.01, time.time)
    events = aiter(queue.watch())
    asked = asyncio.ensure_future(queue.ask(ToolRequest("alpha", "one", {}), ESCALATED))
    waiting: Any = await anext(events)
    ended: Any = await anext(events)
    assert (ended.approval_id, ended.outcome) == (waiting.approval_id, ApprovalOutcome.EXPIRED)
    assert await asked is ApprovalOutcome.EXPIRED
    with pytest.raises(NotFoundError):
        queue.answer(waiting.approval_id, waiting.call_hash, is_approved=True)


async def test_too_many_waiting_calls_are_denied_at_once(point: Point) -> None:
    asked = [await point.ask(number) for number in range(MAX_WAITING)]
    with pytest.raises(ResourceExhaustedError):
        await point.queue.ask(ToolRequest("alpha", "one", {}), ESCALATED)
    for task in asked:
        task.cancel()


def test_a_file_is_replaced_only_if_its_process_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "point.json"
    with ApprovalFile("u", "a").written(path):
        with (
            pytest.raises(FailedPreconditionError, match="--approvals"),
            ApprovalFile("u", "a").written(path),
        ):
            pass
        assert path.exists()
    abandoned = ApprovalFile("u", "a", process=2**22 + 1)  # above the largest process id of Linux
    path.write_text(json.dumps({"url": "u", "address": "a", "token": "t", "process": abandoned.process}))
    with ApprovalFile("u", "b").written(path):
        assert ApprovalFile.read(path).address == "b"
    with pytest.raises(NotFoundError, match="no enforcement point runs"):
        ApprovalFile.read(path)
