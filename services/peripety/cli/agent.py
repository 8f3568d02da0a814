"""`peripety agent`: run agents, show runs, rerun phases."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol
from uuid import uuid4

import typer

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceStub
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.agent_file import AgentFile, read_agent
from peripety.cli.agent_tools import open_tools
from peripety.cli.embedded_services import services_at
from peripety.cli.options import Server
from peripety.cli.output import (
    error_console,
    format_model_usage,
    person_console,
    printable,
    result_console,
    table_console,
    write_json,
)
from peripety.cli.policy_approvals import ApprovalPath, ApprovalTime
from peripety.cli.prompt import prompt_line
from peripety.errors import DeadlineError, FailedPreconditionError
from peripety.rpc.proto_json import enum_word, to_json, without_provider_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping

    from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceAsyncStub
    from peripety.cli.agent_tools import AgentTools


commands = typer.Typer(
    name="agent",
    help="Run agents: phases that share a conversation.",
    no_args_is_help=True,
)

_MAX_LINES, _MAX_COLUMNS = 10, 400

AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


def _input(given: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"--input must be NAME=VALUE: {given!r} lacks the name or the =")
    if not value.startswith("@"):
        return name, value
    try:
        return name, Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--input {name}: cannot read {value[1:]}: {error}") from None


@dataclass(frozen=True, slots=True)
class ApprovalOptions:
    """Options of the calls that wait for a person.

    Attributes:
        file: receives the addresses and the token; None for the default file.
        seconds: the time that a person has.
    """

    file: Path | None
    seconds: float


@dataclass(frozen=True, slots=True)
class PhaseRerun:
    """A phase to rerun.

    Attributes:
        phase: the new definition of the phase.
        with_following: True to rerun the phases after it as well.
    """

    phase: pb.Phase
    with_following: bool


@asynccontextmanager
async def _agents_at(server: str | None) -> AsyncIterator[AgentServiceAsyncStub]:
    async with services_at(server, "gateway") as channel:
        yield AgentServiceStub(channel)


async def _stream_run(
    screen: _RunView,
    inputs: Mapping[str, str],
    server: str | None,
    resumed_run_id: str | None,
    rerun: PhaseRerun | None,
    approval: ApprovalOptions,
) -> int:
    agent, request_id = screen.agent, str(uuid4())
    async with open_tools(agent, approval.file, approval.seconds) as tools, _agents_at(server) as stub:
        if resumed_run_id is None:
            started = pb.RunAgentRequest(
                request_id=request_id,
                manifest=agent.manifest,
                inputs=inputs,
                budget=agent.budget,
            )
            last = await _follow_run(screen, stub, stub.RunAgent(started))
        elif rerun is None:
            last = await _follow_run(screen, stub, stub.ResumeRun(pb.ResumeRunRequest(run_id=resumed_run_id)))
        else:
            request = pb.RerunPhaseRequest(
                request_id=request_id,
                run_id=resumed_run_id,
                phase=rerun.phase,
                run_following=rerun.with_following,
            )
            last = await _follow_run(screen, stub, stub.RerunPhase(request))
        while last.HasField("tools_requested"):
            tools.begin(last.run_id, [*inputs.values()])
            given = [await screen.tool_result(tools, call) for call in last.tools_requested.calls]
            on = pb.ContinueRunRequest(request_id=str(uuid4()), run_id=last.run_id, results=given)
            last = await _follow_run(screen, stub, stub.ContinueRun(on))
    return 0 if last.HasField("completed") else 1


async def _follow_run(
    screen: _RunView,
    stub: AgentServiceAsyncStub,
    responses: AsyncIterable[_RunResponse],
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


class _RunResponse(Protocol):
    """A response of a call that streams a run."""

    @property
    def event(self) -> pb.RunEvent: ...


@dataclass(frozen=True, slots=True)
class _RunView:
    """Output of the events of a run, and source of the results of its tools."""

    agent: AgentFile
    as_json: bool

    def show(self, event: pb.RunEvent) -> None:
        """Print an event."""
        if self.as_json:
            write_json(to_json(without_provider_state(event)))
        else:
            self._print_event(event)

    async def tool_result(self, tools: AgentTools, call: gateway.ToolCall) -> gateway.ToolResult:
        """Return and print the result of a tool call: a refusal, or the result of its command or server.

        The result of a tool without either is typed in at the terminal.

        Raises:
            FailedPreconditionError: the tool has no command, and standard input is not a terminal.
        """
        result = await tools.refuse(call)
        if result is None and tools.has_runner(call.name):
            result = await tools.run_call(call)
        if result is not None:
            if not self.as_json:
                _print_result(result)
            return result
        said = None
        if sys.stdin.isatty():
            said = prompt_line(f"{_format_call(call)} = ")
        if said is None:
            raise FailedPreconditionError(
                f"tool {printable(call.name)} has no command in the agent file and no result was typed in;"
                " add a command, then continue with --resume",
                code="TOOL_WITHOUT_COMMAND",
            )
        return gateway.ToolResult(call_id=call.call_id, text=said)

    def _print_event(self, event: pb.RunEvent) -> None:
        out = result_console()
        match event.WhichOneof("event"):
            case "phase_started":
                if event.sequence == 1:
                    person_console().print(f"run {event.run_id}", style="dim")
                out.print(f"── {event.phase_started.phase_id}", style="bold")
            case "text_delta":
                out.print(printable(event.text_delta), end="")
                out.file.flush()
            case "repair_started":
                out.print("\n(the answer was not valid; trying again)", style="dim")
            case "phase_completed":
                out.print(f"\n   {format_model_usage(event.phase_completed.usage)}", style="dim")
            case "tools_requested":
                for call in event.tools_requested.calls:
                    out.print(f"   {_format_call(call)}", style="dim")
            case "completed":
                out.print(f"── done: {format_model_usage(event.completed.usage)}", style="bold")
            case "failed":
                _print_failure(event.failed)


def _print_result(result: gateway.ToolResult) -> None:
    """Print the first lines of the result of a tool."""
    lines = printable(result.text).splitlines() or [""]
    shown = [line if len(line) <= _MAX_COLUMNS else f"{line[:_MAX_COLUMNS]}…" for line in lines[:_MAX_LINES]]
    if len(lines) > len(shown):
        shown.append(f"… {len(lines) - len(shown):,} more lines")
    mark = "✗" if result.is_error else "="
    for number, line in enumerate(shown):
        result_console().print(f"   {' ' if number else mark} {line}", style="dim")


def _format_call(call: gateway.ToolCall) -> str:
    return printable(f"{call.name} {call.arguments.decode(errors='replace')}")


def _print_failure(failed: pb.Run) -> None:
    if failed.HasField("error"):
        reason = f"{failed.error.message} ({failed.error.reason})"
    else:
        reason = "the run was cancelled"
    error_console().print(f"error: phase {failed.phase_id}: {printable(reason)}", style="red")


async def _fetch_runs(server: str | None, count: int, *, as_json: bool) -> None:
    async with _agents_at(server) as stub:
        found = await stub.ListRuns(pb.ListRunsRequest(page_size=count))
    if as_json:
        for one in found.runs:
            write_json(to_json(one))
        return
    for one in found.runs:
        phases = f"{one.completed_phases}/{one.total_phases}"
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        table_console().print(
            f"{one.run_id}  {begun}  {_format_state(one):18}  {phases:>5}  {printable(one.name)}",
        )


async def _fetch_run(run_id: str, server: str | None, *, as_json: bool) -> None:
    async with _agents_at(server) as stub:
        found = (await stub.GetRun(pb.GetRunRequest(run_id=run_id))).run
    if as_json:
        write_json(to_json(without_provider_state(found)))
        return
    out = result_console()
    out.print(f"{printable(found.manifest.name)}: {_format_state(found)}", style="bold")
    for result in found.results:
        out.print(f"── {result.phase_id}", style="bold")
        out.print(printable(result.completion.text))
        out.print(f"   {format_model_usage(result.usage)}", style="dim")
    for call in found.pending_calls:
        out.print(f"waiting for {_format_call(call)}")
    if found.state == pb.RUN_STATE_FAILED:
        _print_failure(found)
    out.print(f"── total: {format_model_usage(found.usage)}", style="bold")


def _format_state(run: pb.Run | pb.RunSummary) -> str:
    return enum_word(run.DESCRIPTOR.fields_by_name["state"], run.state).replace("_", " ")


@commands.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Agent file, in TOML.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--input",
            metavar="NAME=VALUE",
            help="Value for {{NAME}}; NAME=@FILE reads the value from a file.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Continue this run instead of starting a new one."),
    ] = None,
    rerun_phase: Annotated[
        str | None,
        typer.Option(
            metavar="PHASE",
            help="With --resume: run this phase again, as FILE defines it now, in a new run.",
        ),
    ] = None,
    following: Annotated[
        bool,
        typer.Option("--following", help="With --rerun-phase: also run the phases after it."),
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="With --rerun-phase: replace the instructions."),
    ] = None,
    input_template: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="With --rerun-phase: replace the input template."),
    ] = None,
    approvals: ApprovalPath = None,
    approval_time: ApprovalTime = 300.0,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Run an agent. The commands of its tools and MCP servers run on this machine.

    Shows the output and the usage of each phase. A policy in the file decides each call of a tool.
    """
    if rerun_phase is None and (following or system is not None or input_template is not None):
        raise typer.BadParameter("--following, --system and --input-template need --rerun-phase PHASE")
    if rerun_phase is not None and resume is None:
        raise typer.BadParameter("--rerun-phase needs --resume RUN, the run that contains the phase")
    described = read_agent(file)
    anew = None
    if rerun_phase is not None:
        phase = described.phase(rerun_phase)
        phase.system = phase.system if system is None else system
        phase.input_template = phase.input_template if input_template is None else input_template
        anew = PhaseRerun(phase, following)
    given = dict(map(_input, inputs or ()))
    screen = _RunView(described, as_json)
    raise typer.Exit(
        asyncio.run(
            _stream_run(screen, given, server, resume, anew, ApprovalOptions(approvals, approval_time))
        )
    )


@commands.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    asyncio.run(_fetch_runs(server, count, as_json=as_json))


@commands.command()
def show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety agent list`.")],
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show the results of the phases of a run."""
    asyncio.run(_fetch_run(run_id, server, as_json=as_json))
