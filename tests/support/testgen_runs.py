"""Runs of generated tests over the real protocol: a server whose model is scripted, and a client."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from peripety.testgen.setup import register_service_with
from support.api import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceAsyncStub
    from peripety.core.config import Config
    from peripety.gateway.types.response import ModelGateway


def kinds(events: Sequence[pb.TestGenEvent]) -> list[str]:
    """What each event tells."""
    return [str(event.WhichOneof("event")) for event in events]


@dataclass
class TestRuns:
    """Calls of one client; streams are gathered until they end."""

    __test__ = False

    stub: TestGenServiceAsyncStub

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str) -> AsyncIterator[Self]:
        """Connect to a server."""
        async with open_channel(address) as channel:
            yield cls(TestGenServiceStub(channel))

    async def generate(self, **fields: Any) -> list[pb.TestGenEvent]:
        """All events of a new run."""
        request = pb.GenerateTestsRequest(
            **{"request_id": new_id(), "task_description": "make it so", **fields},
        )
        return [response.event async for response in self.stub.GenerateTests(request)]

    async def resume(self, run_id: str, after: int = 0) -> list[pb.TestGenEvent]:
        """All events of a run after one."""
        request = pb.ResumeTestsRequest(run_id=run_id, after_sequence=after)
        return [response.event async for response in self.stub.ResumeTests(request)]

    async def run(self, **fields: Any) -> list[pb.RunTestsResponse]:
        """All that running tests shows."""
        request = pb.RunTestsRequest(**{"request_id": new_id(), **fields})
        return [response async for response in self.stub.RunTests(request)]

    async def get(self, run_id: str) -> pb.TestRun:
        """A run as it is stored."""
        return (await self.stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run

    async def page(self, **fields: Any) -> pb.ListTestRunsResponse:
        """A page of runs."""
        return await self.stub.ListTestRuns(pb.ListTestRunsRequest(**fields))

    async def cancel(self, run_id: str, request_id: str | None = None) -> pb.TestRun:
        """Stop a run."""
        request = pb.CancelTestRunRequest(request_id=request_id or new_id(), run_id=run_id)
        return (await self.stub.CancelTestRun(request)).run

    async def delete(self, run_id: str, request_id: str | None = None) -> None:
        """Delete a run."""
        await self.stub.DeleteTestRun(
            pb.DeleteTestRunRequest(request_id=request_id or new_id(), run_id=run_id),
        )

    async def export(self, run_id: str, to: pb.TestFormat.ValueType, **fields: Any) -> list[bytes]:
        """The parts of a file."""
        request = pb.ExportTestsRequest(run_id=run_id, format=to, **fields)
        parts = [part async for part in self.stub.ExportTests(request)]
        assert [part.sequence for part in parts] == [*range(1, len(parts) + 1)]
        return [part.chunk for part in parts]


@asynccontextmanager
async def serving_runs(config: Config, gateway: ModelGateway) -> AsyncIterator[TestRuns]:
    """Serve runs alone, whose questions this gateway answers, and connect."""
    bind = partial(register_service_with, gateway=gateway)
    async with serve_registered(config, [bind]) as app, TestRuns.connected(app.address) as client:
        yield client
