"""gRPC servicer of AgentService.

An agent is a manifest of phases that run one after another over one stored conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.agent.pb import (
    event_to_proto,
    manifest_from_proto,
    phase_from_proto,
    results_from_proto,
    run_budget_from_proto,
    run_to_proto,
    runs_to_proto,
    state_from_proto,
)
from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceServicer
from peripety.core.concurrency import closing
from peripety.gateway.pb.resources import request_key_from_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.agent.manifest import AgentRun
    from peripety.agent.runs import AgentRuns
    from peripety.core.runs.types import StartResult


class AgentServicer(AgentServiceServicer):
    """Handlers of AgentService.

    Args:
        runs: the agent runs.
    """

    def __init__(self, runs: AgentRuns) -> None:
        self._runs = runs

    async def RunAgent(  # noqa: N802 - the contract's name
        self,
        request: pb.RunAgentRequest,
        _context: Any,
    ) -> AsyncIterator[pb.RunAgentResponse]:
        """Start a run and stream it."""
        started = await self._runs.start(
            manifest_from_proto(request.manifest),
            dict(request.inputs),
            run_budget_from_proto(request),
            request_key_from_proto(request),
        )
        async with closing(self._events(started)) as events:
            async for event in events:
                yield pb.RunAgentResponse(event=event)

    async def ContinueRun(  # noqa: N802 - the contract's name
        self,
        request: pb.ContinueRunRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ContinueRunResponse]:
        """Submit tool results, and stream the events that follow."""
        started = await self._runs.continue_(
            request.run_id,
            results_from_proto(request.results),
            request_key_from_proto(request),
        )
        async with closing(self._events(started)) as events:
            async for event in events:
                yield pb.ContinueRunResponse(event=event)

    async def ResumeRun(  # noqa: N802 - the contract's name
        self,
        request: pb.ResumeRunRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ResumeRunResponse]:
        """Stream the events of a run after a given sequence number."""
        async with closing(self._runs.resume(request.run_id, request.after_sequence)) as events:
            async for recorded in events:
                yield pb.ResumeRunResponse(event=event_to_proto(request.run_id, recorded))

    async def RerunPhase(  # noqa: N802 - the contract's name
        self,
        request: pb.RerunPhaseRequest,
        _context: Any,
    ) -> AsyncIterator[pb.RerunPhaseResponse]:
        """Rerun one phase as a new run, and stream its events."""
        started = await self._runs.rerun_phase(
            request.run_id,
            phase_from_proto(".phase", request.phase),
            include_later=request.run_following,
            request=request_key_from_proto(request),
        )
        async with closing(self._events(started)) as events:
            async for event in events:
                yield pb.RerunPhaseResponse(event=event)

    async def GetRun(  # noqa: N802 - the contract's name
        self,
        request: pb.GetRunRequest,
        _context: Any,
    ) -> pb.GetRunResponse:
        """Return a run."""
        return pb.GetRunResponse(run=run_to_proto(await self._runs.get(request.run_id)))

    async def ListRuns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListRunsRequest,
        _context: Any,
    ) -> pb.ListRunsResponse:
        """List runs, newest first."""
        state = state_from_proto(request.state)
        return runs_to_proto(await self._runs.list(state, request.page_size, request.page_token))

    async def CancelRun(  # noqa: N802 - the contract's name
        self,
        request: pb.CancelRunRequest,
        _context: Any,
    ) -> pb.CancelRunResponse:
        """Cancel a run."""
        return pb.CancelRunResponse(
            run=run_to_proto(await self._runs.cancel(request.run_id, request_key_from_proto(request))),
        )

    async def DeleteRun(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteRunRequest,
        _context: Any,
    ) -> pb.DeleteRunResponse:
        """Delete a run and its conversation."""
        await self._runs.delete(request.run_id, request_key_from_proto(request))
        return pb.DeleteRunResponse()

    async def _events(self, started: StartResult[AgentRun]) -> AsyncIterator[pb.RunEvent]:
        async with closing(self._runs.follow(started.run_id, started.after)) as events:
            async for recorded in events:
                yield event_to_proto(started.run_id, recorded)
