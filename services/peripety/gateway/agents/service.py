"""gRPC servicer of AgentService."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceServicer
from peripety.gateway.messages.agents import (
    event_to_proto,
    manifest_from_proto,
    phase_from_proto,
    results_from_proto,
    run_budget,
    run_to_proto,
    runs_to_proto,
    state_from_proto,
)
from peripety.gateway.messages.conversations import named
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.durable.model import Started
    from peripety.gateway.agents.model import Run
    from peripety.gateway.agents.runs import Runs

__all__ = ["AgentServicer"]


class AgentServicer(AgentServiceServicer):
    """Handlers of AgentService.

    Args:
        runs: the agent runs.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def RunAgent(  # noqa: N802 - the contract's name
        self, request: pb.RunAgentRequest, _context: Any
    ) -> AsyncIterator[pb.RunAgentResponse]:
        """Start a run and stream it."""
        started = await self._runs.start(
            manifest_from_proto(request.manifest), dict(request.inputs), run_budget(request), named(request)
        )
        async with following(self._events(started)) as events:
            async for event in events:
                yield pb.RunAgentResponse(event=event)

    async def ContinueRun(  # noqa: N802 - the contract's name
        self, request: pb.ContinueRunRequest, _context: Any
    ) -> AsyncIterator[pb.ContinueRunResponse]:
        """Submit tool results, and stream the events that follow."""
        started = await self._runs.go_on(request.run_id, results_from_proto(request.results), named(request))
        async with following(self._events(started)) as events:
            async for event in events:
                yield pb.ContinueRunResponse(event=event)

    async def ResumeRun(  # noqa: N802 - the contract's name
        self, request: pb.ResumeRunRequest, _context: Any
    ) -> AsyncIterator[pb.ResumeRunResponse]:
        """Stream the events of a run after a given sequence number."""
        async with following(self._runs.resume(request.run_id, request.after_sequence)) as events:
            async for recorded in events:
                yield pb.ResumeRunResponse(event=event_to_proto(request.run_id, recorded))

    async def RerunPhase(  # noqa: N802 - the contract's name
        self, request: pb.RerunPhaseRequest, _context: Any
    ) -> AsyncIterator[pb.RerunPhaseResponse]:
        """Rerun one phase as a new run, and stream its events."""
        started = await self._runs.do_anew(
            request.run_id,
            phase_from_proto(".phase", request.phase),
            following=request.run_following,
            request=named(request),
        )
        async with following(self._events(started)) as events:
            async for event in events:
                yield pb.RerunPhaseResponse(event=event)

    async def GetRun(  # noqa: N802 - the contract's name
        self, request: pb.GetRunRequest, _context: Any
    ) -> pb.GetRunResponse:
        """Return a run."""
        return pb.GetRunResponse(run=run_to_proto(await self._runs.get(request.run_id)))

    async def ListRuns(  # noqa: N802 - the contract's name
        self, request: pb.ListRunsRequest, _context: Any
    ) -> pb.ListRunsResponse:
        """List runs, newest first."""
        state = state_from_proto(request.state)
        return runs_to_proto(await self._runs.list(state, request.page_size, request.page_token))

    async def CancelRun(  # noqa: N802 - the contract's name
        self, request: pb.CancelRunRequest, _context: Any
    ) -> pb.CancelRunResponse:
        """Cancel a run."""
        return pb.CancelRunResponse(run=run_to_proto(await self._runs.cancel(request.run_id, named(request))))

    async def DeleteRun(  # noqa: N802 - the contract's name
        self, request: pb.DeleteRunRequest, _context: Any
    ) -> pb.DeleteRunResponse:
        """Delete a run and its conversation."""
        await self._runs.delete(request.run_id, named(request))
        return pb.DeleteRunResponse()

    async def _events(self, started: Started[Run]) -> AsyncIterator[pb.RunEvent]:
        async with following(self._runs.follow(started.run_id, started.after)) as events:
            async for recorded in events:
                yield event_to_proto(started.run_id, recorded)
