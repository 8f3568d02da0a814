"""Agents for tests: manifests in few words, and a client that collects the events of runs."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceStub
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.rpc.channel import open_channel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    import grpc.aio

    from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceAsyncStub


def phase(phase_id: str, says: str, **fields: Any) -> pb.Phase:
    """Return a phase with this prompt."""
    return pb.Phase(phase_id=phase_id, input_template=says, **fields)


def manifest(*phases: pb.Phase, **fields: Any) -> pb.Manifest:
    """An agent with these phases."""
    return pb.Manifest(**{"name": "agent", "phases": phases, **fields})


def tool(name: str) -> gateway.Tool:
    """A tool that takes any object."""
    return gateway.Tool(name=name, description="d", input_schema=b'{"type": "object"}')


def schema(name: str, **properties: Any) -> gateway.ResponseSchema:
    """The schema of an object with exactly these properties."""
    document = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return gateway.ResponseSchema(name=name, document=json.dumps(document).encode())


@dataclass
class Agents:
    """Calls of one client; streams are gathered until they end."""

    stub: AgentServiceAsyncStub
    channel: grpc.aio.Channel

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str) -> AsyncIterator[Self]:
        """Connect to a server."""
        async with open_channel(address) as channel:
            yield cls(AgentServiceStub(channel), channel)

    async def run(
        self,
        agent: pb.Manifest,
        request_id: str = "",
        budget: Any = None,
        **inputs: str,
    ) -> list[pb.RunEvent]:
        """Start a run and follow it."""
        return await _events(self.stub.RunAgent(run_request(agent, request_id, budget, **inputs)))

    async def go_on(self, run_id: str, request_id: str = "", **results: str) -> list[pb.RunEvent]:
        """Hand in results by the ids of their calls, and follow the run."""
        given = [gateway.ToolResult(call_id=call_id, text=text) for call_id, text in results.items()]
        request = pb.ContinueRunRequest(request_id=request_id or new_id(), run_id=run_id, results=given)
        return await _events(self.stub.ContinueRun(request))

    async def resume(self, run_id: str, after: int = 0) -> list[pb.RunEvent]:
        """Follow a run from an event on."""
        return await _events(self.stub.ResumeRun(pb.ResumeRunRequest(run_id=run_id, after_sequence=after)))

    async def rerun(
        self,
        run_id: str,
        edited: pb.Phase,
        request_id: str = "",
        *,
        following: bool = False,
    ) -> list[pb.RunEvent]:
        """Do a phase anew, and follow the new run."""
        request = pb.RerunPhaseRequest(
            request_id=request_id or new_id(),
            run_id=run_id,
            phase=edited,
            run_following=following,
        )
        return await _events(self.stub.RerunPhase(request))

    async def get(self, run_id: str) -> pb.Run:
        """Return the current run."""
        return (await self.stub.GetRun(pb.GetRunRequest(run_id=run_id))).run

    async def cancel(self, run_id: str, request_id: str = "") -> pb.Run:
        """Stop a run."""
        request = pb.CancelRunRequest(request_id=request_id or new_id(), run_id=run_id)
        return (await self.stub.CancelRun(request)).run

    async def delete(self, run_id: str, request_id: str = "") -> None:
        """Delete a run."""
        await self.stub.DeleteRun(pb.DeleteRunRequest(request_id=request_id or new_id(), run_id=run_id))


def new_id() -> str:
    """A fresh request id."""
    return str(uuid4())


def run_request(
    agent: pb.Manifest,
    request_id: str = "",
    budget: Any = None,
    **inputs: str,
) -> pb.RunAgentRequest:
    """The request for a new run."""
    return pb.RunAgentRequest(request_id=request_id or new_id(), manifest=agent, inputs=inputs, budget=budget)


def kinds(events: Iterable[pb.RunEvent]) -> list[str]:
    """Return the kinds of events, in order; neighbouring pieces of an answer count as one."""
    told: list[str] = []
    for event in events:
        kind = event.WhichOneof("event") or ""
        if not (kind.endswith("_delta") and told[-1:] == [kind]):
            told.append(kind)
    return told


async def _events(call: Any) -> list[pb.RunEvent]:
    return [response.event async for response in call]
