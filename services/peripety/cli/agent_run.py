"""Implementation of `peripety agent`: run agents, show runs, rerun phases."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceStub
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.choosing import ask
from peripety.cli.embedded import services_at
from peripety.cli.jsonify import enum_word, jsonify, readable
from peripety.cli.output import asides, errors, results, tables, write_json
from peripety.cli.spending import model_usage_line
from peripety.cli.text import printable
from peripety.errors import DeadlineError, FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping

    from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceAsyncStub
    from peripety.cli.agent_file import AgentFile

__all__ = ["Anew", "list_runs", "run", "show_run"]


@dataclass(frozen=True, slots=True)
class Anew:
    """A phase to rerun.

    Attributes:
        phase: the new definition of the phase.
        following: True to rerun the phases after it as well.
    """

    phase: pb.Phase
    following: bool


def run(
    agent: AgentFile,
    inputs: Mapping[str, str],
    *,
    server: str | None,
    resumed: str | None,
    anew: Anew | None,
    as_json: bool,
) -> int:
    """Start or resume an agent run, show its events, and return the exit code.

    Args:
        agent: the agent; its commands are the tools of this machine.
        inputs: values for the templates, by name.
        server: `host:port` of a server; None runs the agent in this process.
        resumed: the id of the run to continue; None starts a new run.
        anew: the phase of that run to rerun.
        as_json: True to print events as lines of JSON.
    """
    return asyncio.run(_run(_Screen(agent, as_json), inputs, server, resumed, anew))


def list_runs(server: str | None, count: int, *, as_json: bool) -> None:
    """Print runs, newest first."""
    asyncio.run(_list(server, count, as_json=as_json))


def show_run(run_id: str, server: str | None, *, as_json: bool) -> None:
    """Print the phase results of a run."""
    asyncio.run(_show(run_id, server, as_json=as_json))


@asynccontextmanager
async def _agents(server: str | None) -> AsyncIterator[AgentServiceAsyncStub]:
    async with services_at(server, "gateway") as channel:
        yield AgentServiceStub(channel)


async def _run(
    screen: _Screen, inputs: Mapping[str, str], server: str | None, resumed: str | None, anew: Anew | None
) -> int:
    agent, request_id = screen.agent, str(uuid4())
    async with _agents(server) as stub:
        if resumed is None:
            started = pb.RunAgentRequest(
                request_id=request_id, manifest=agent.manifest, inputs=inputs, budget=agent.budget
            )
            last = await _followed(screen, stub, stub.RunAgent(started))
        elif anew is None:
            last = await _followed(screen, stub, stub.ResumeRun(pb.ResumeRunRequest(run_id=resumed)))
        else:
            rerun = pb.RerunPhaseRequest(
                request_id=request_id, run_id=resumed, phase=anew.phase, run_following=anew.following
            )
            last = await _followed(screen, stub, stub.RerunPhase(rerun))
        while last.HasField("tools_requested"):
            given = [await screen.result_of(call) for call in last.tools_requested.calls]
            on = pb.ContinueRunRequest(request_id=str(uuid4()), run_id=last.run_id, results=given)
            last = await _followed(screen, stub, stub.ContinueRun(on))
    return 0 if last.HasField("completed") else 1


async def _followed(
    screen: _Screen, stub: AgentServiceAsyncStub, responses: AsyncIterable[_Response]
) -> pb.RunEvent:
    """Show a run until it ends or waits for a tool, and return its last event.

    A call has a deadline and a run does not, so the stream is reopened when a call ends.
    """
    last = pb.RunEvent()
    while True:
        try:
            async for response in responses:
                last = response.event
                screen.show(last)
        except DeadlineError:
            if not last.sequence:
                raise
            on = pb.ResumeRunRequest(run_id=last.run_id, after_sequence=last.sequence)
            responses = stub.ResumeRun(on)
        else:
            return last


class _Response(Protocol):
    """A response of a call that streams a run."""

    @property
    def event(self) -> pb.RunEvent: ...


@dataclass(frozen=True, slots=True)
class _Screen:
    """Output of the events of a run, and source of the results of its tools."""

    agent: AgentFile
    as_json: bool

    def show(self, event: pb.RunEvent) -> None:
        """Print an event."""
        if self.as_json:
            write_json(jsonify(readable(event)))
        else:
            self._tell(event)

    async def result_of(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Return the result of a tool call, from its command or typed in at the terminal.

        Raises:
            FailedPreconditionError: the tool has no command, and standard input is not a terminal.
        """
        if call.name in self.agent.commands:
            return await self.agent.commands[call.name].result_of(call)
        said = None
        if sys.stdin.isatty():
            said = await asyncio.to_thread(ask, f"{_call_line(call)} = ")
        if said is None:
            raise FailedPreconditionError(
                f"tool {printable(call.name)} has no command in the agent file and no result was typed in;"
                " add a command, then continue with --resume",
                code="TOOL_WITHOUT_COMMAND",
            )
        return gateway.ToolResult(call_id=call.call_id, text=said)

    def _tell(self, event: pb.RunEvent) -> None:
        out = results()
        match event.WhichOneof("event"):
            case "phase_started":
                if event.sequence == 1:
                    asides().print(f"run {event.run_id}", style="dim")
                out.print(f"── {event.phase_started.phase_id}", style="bold")
            case "text_delta":
                out.print(printable(event.text_delta), end="")
                out.file.flush()
            case "repair_started":
                out.print("\n(the answer was not valid; trying again)", style="dim")
            case "phase_completed":
                out.print(f"\n   {model_usage_line(event.phase_completed.usage)}", style="dim")
            case "tools_requested":
                for call in event.tools_requested.calls:
                    out.print(f"   {_call_line(call)}", style="dim")
            case "completed":
                out.print(f"── done: {model_usage_line(event.completed.usage)}", style="bold")
            case "failed":
                _tell_failure(event.failed)


def _call_line(call: gateway.ToolCall) -> str:
    return printable(f"{call.name} {call.arguments.decode(errors='replace')}")


def _tell_failure(failed: pb.Run) -> None:
    if failed.HasField("error"):
        reason = f"{failed.error.message} ({failed.error.reason})"
    else:
        reason = "the run was cancelled"
    errors().print(f"error: phase {failed.phase_id}: {printable(reason)}", style="red")


async def _list(server: str | None, count: int, *, as_json: bool) -> None:
    async with _agents(server) as stub:
        found = await stub.ListRuns(pb.ListRunsRequest(page_size=count))
    if as_json:
        for one in found.runs:
            write_json(jsonify(one))
        return
    for one in found.runs:
        phases = f"{one.completed_phases}/{one.total_phases}"
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        tables().print(f"{one.run_id}  {begun}  {_state(one):18}  {phases:>5}  {printable(one.name)}")


async def _show(run_id: str, server: str | None, *, as_json: bool) -> None:
    async with _agents(server) as stub:
        found = (await stub.GetRun(pb.GetRunRequest(run_id=run_id))).run
    if as_json:
        write_json(jsonify(readable(found)))
        return
    out = results()
    out.print(f"{printable(found.manifest.name)}: {_state(found)}", style="bold")
    for result in found.results:
        out.print(f"── {result.phase_id}", style="bold")
        out.print(printable(result.completion.text))
        out.print(f"   {model_usage_line(result.usage)}", style="dim")
    for call in found.pending_calls:
        out.print(f"waiting for {_call_line(call)}")
    if found.state == pb.RUN_STATE_FAILED:
        _tell_failure(found)
    out.print(f"── total: {model_usage_line(found.usage)}", style="bold")


def _state(run: pb.Run | pb.RunSummary) -> str:
    return enum_word(run.DESCRIPTOR.fields_by_name["state"], run.state).replace("_", " ")
