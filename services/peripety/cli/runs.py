"""`peripety runs`: list, show, cancel and delete the runs of long commands; follow one of them.

Commands that call a model for minutes are runs: they survive the command, and a repeated command or its
option `--follow` continues them.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast
from uuid import uuid4

import typer

from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.api.scenario.v1 import scenario_pb2 as scenario
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.options import Server
from peripety.cli.output import (
    EXIT_INTERRUPTED,
    error_console,
    one_line,
    person_console,
    printable,
    result_console,
    start_table,
    table_console,
    write_json,
)
from peripety.cli.render.console import live_view
from peripety.cli.render.policy import live_policy_view
from peripety.errors import (
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    SpecError,
)
from peripety.rpc.proto_json import enum_word, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine

    import grpc.aio

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.cli.render.console import ConsoleView
    from peripety.cli.render.policy import PolicyProgressView


commands = typer.Typer(
    name="runs",
    help="List, show and stop runs of long commands.",
    no_args_is_help=True,
)

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety runs list`.")]
Follow = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Follow this run instead of starting one; see `peripety runs list`."),
]


_STORED = "what the run has received is stored"


class RunFollower:
    """Follower of the run of a command, which names the command that follows it again.

    Args:
        command: the command that follows the run again, without the id of the run.
        server: `host:port` of the server that has the run; None for this process.

    Attributes:
        run_id: the run; empty before its first event.
    """

    def __init__(self, command: str, server: str | None) -> None:
        self._command = command
        self._server = server
        self.run_id = ""

    async def events(
        self,
        responses: AsyncIterable[T],
        resume: Callable[[str, int], AsyncIterable[T]],
    ) -> AsyncIterator[T]:
        """Yield the responses of a run until it ends.

        A call has a deadline and a run does not, so calls are repeated.

        Args:
            responses: the first call.
            resume: calls again, with the id of the run and the sequence of the last response.
        """
        last = 0
        while True:
            try:
                async for response in responses:
                    event = cast("Any", response)
                    if event.run_id and not self.run_id:
                        person_console().print(f"run {one_line(event.run_id)}", style="dim")
                    self.run_id, last = event.run_id, event.sequence
                    yield response
            except DeadlineError:
                if not last:
                    raise
                responses = resume(self.run_id, last)
            else:
                return

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a command that follows the run, and return its result.

        After an interruption, the user reads which command follows the run again; after an error, that the
        run can be continued.
        """
        try:
            return asyncio.run(_cancel_on_signal(work))
        except (KeyboardInterrupt, asyncio.CancelledError):
            error_console().print("interrupted")
            if self.run_id:
                server = f" --server {shlex.quote(self._server)}" if self._server else ""
                command = f"{self._command} {shlex.quote(one_line(self.run_id))}{server}"
                error_console().print(f"{_STORED}; follow it with: {command}", soft_wrap=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except SpecError:
            raise
        except (InvalidArgumentError, FailedPreconditionError):
            # The same command would fail again.
            raise
        except PeripetyError:
            if self.run_id:
                error_console().print(f"{_STORED}; the command that started it continues it", soft_wrap=True)
            raise


async def _cancel_on_signal(work: Coroutine[Any, Any, T]) -> T:
    task = cast("asyncio.Task[T]", asyncio.current_task())
    # A signal delivered to another thread wakes the event loop only if the loop itself handles it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await work


async def resumed_generation(
    channel: grpc.aio.Channel,
    run_id: str,
    after: int,
) -> AsyncIterator[scenario.GenerateScenarioResponse]:
    """Yield the events of the run of a generation after a sequence.

    Raises:
        NotFoundError: the run is not a generation, or does not exist.
    """
    async for response in _resumed_scenario_run(channel, run_id, after):
        if not response.HasField("generation"):
            raise NotFoundError(f"run {run_id} is not a generation", code="UNKNOWN_RUN")
        yield response.generation


async def resumed_amendment(
    channel: grpc.aio.Channel,
    run_id: str,
    after: int,
) -> AsyncIterator[scenario.AmendScenarioResponse]:
    """Yield the events of the run of an amendment after a sequence; see `resumed_generation`."""
    async for response in _resumed_scenario_run(channel, run_id, after):
        if not response.HasField("amendment"):
            raise NotFoundError(
                f"run {run_id} is not an amendment; see: peripety runs list", code="UNKNOWN_RUN"
            )
        yield response.amendment


async def resumed_compilation(
    channel: grpc.aio.Channel,
    run_id: str,
    after: int,
) -> AsyncIterator[policy.CompilePolicyResponse]:
    """Yield the events of the run of a compilation of a policy after a sequence."""
    request = policy.ResumePolicyRunRequest(run_id=run_id, after_sequence=after)
    async for response in PolicyServiceStub(channel).ResumePolicyRun(request):
        yield response.event


def _resumed_scenario_run(
    channel: grpc.aio.Channel,
    run_id: str,
    after: int,
) -> AsyncIterable[scenario.ResumeScenarioRunResponse]:
    request = scenario.ResumeScenarioRunRequest(run_id=run_id, after_sequence=after)
    return ScenarioServiceStub(channel).ResumeScenarioRun(request)


@dataclass(frozen=True, slots=True)
class _RunCalls:
    """The calls of one service about its runs."""

    list: Callable[[int], Awaitable[Any]]
    get: Callable[[str], Awaitable[Any]]
    cancel: Callable[[str], Awaitable[Any]]
    delete: Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def _runs_at(server: str | None) -> AsyncIterator[tuple[grpc.aio.Channel, tuple[_RunCalls, ...]]]:
    """Yield a channel, and the calls of each service that has runs."""
    async with services_at(server, "gateway", "scenarios", "policies") as channel:
        scenarios, policies = ScenarioServiceStub(channel), PolicyServiceStub(channel)
        yield (
            channel,
            (
                _RunCalls(
                    lambda count: scenarios.ListScenarioRuns(
                        scenario.ListScenarioRunsRequest(page_size=count),
                    ),
                    lambda run_id: scenarios.GetScenarioRun(scenario.GetScenarioRunRequest(run_id=run_id)),
                    lambda run_id: scenarios.CancelScenarioRun(
                        scenario.CancelScenarioRunRequest(request_id=str(uuid4()), run_id=run_id),
                    ),
                    lambda run_id: scenarios.DeleteScenarioRun(
                        scenario.DeleteScenarioRunRequest(request_id=str(uuid4()), run_id=run_id),
                    ),
                ),
                _RunCalls(
                    lambda count: policies.ListPolicyRuns(policy.ListPolicyRunsRequest(page_size=count)),
                    lambda run_id: policies.GetPolicyRun(policy.GetPolicyRunRequest(run_id=run_id)),
                    lambda run_id: policies.CancelPolicyRun(
                        policy.CancelPolicyRunRequest(request_id=str(uuid4()), run_id=run_id),
                    ),
                    lambda run_id: policies.DeletePolicyRun(
                        policy.DeletePolicyRunRequest(request_id=str(uuid4()), run_id=run_id),
                    ),
                ),
            ),
        )


async def _fetch_runs(server: str | None, count: int) -> list[common.CallRun]:
    async with _runs_at(server) as (_, services):
        found = [run for calls in services for run in (await calls.list(count)).runs]
    return sorted(found, key=lambda run: (run.create_time.ToNanoseconds(), run.run_id), reverse=True)[:count]


async def _find_service(services: tuple[_RunCalls, ...], run_id: str) -> tuple[_RunCalls, common.CallRun]:
    *others, last = services
    for calls in others:
        try:
            return calls, (await calls.get(run_id)).run
        except NotFoundError:
            continue
    return last, (await last.get(run_id)).run


async def _cancel(run_id: str, server: str | None) -> None:
    async with _runs_at(server) as (_, services):
        calls, _ = await _find_service(services, run_id)
        await calls.cancel(run_id)


async def _delete(run_id: str, server: str | None) -> None:
    async with _runs_at(server) as (_, services):
        calls, _ = await _find_service(services, run_id)
        await calls.delete(run_id)


async def _show(run_id: str, server: str | None, *, as_json: bool) -> None:
    async with _runs_at(server) as (channel, services):
        _, run = await _find_service(services, run_id)
        if as_json:
            write_json(to_json(run))
        else:
            _print_summary(run)
        view = live_policy_view if run.method == "CompilePolicy" else live_view
        with view(result_console()) as story:
            async for event in _recorded_events(channel, run):
                if as_json:
                    write_json(to_json(event))
                elif isinstance(event, policy.CompilePolicyResponse):
                    cast("PolicyProgressView", story).show(event)
                elif isinstance(event, scenario.AmendScenarioResponse):
                    cast("ConsoleView", story).amendment(event)
                else:
                    cast("ConsoleView", story).generation(event)


async def _recorded_events(
    channel: grpc.aio.Channel,
    run: common.CallRun,
) -> AsyncIterator[
    scenario.GenerateScenarioResponse | scenario.AmendScenarioResponse | policy.CompilePolicyResponse
]:
    """Yield the events of a run that are recorded now."""
    if run.method == "CompilePolicy":
        wanted = policy.ResumePolicyRunRequest(run_id=run.run_id, recorded_only=True)
        async for compiled in PolicyServiceStub(channel).ResumePolicyRun(wanted):
            yield compiled.event
        return
    request = scenario.ResumeScenarioRunRequest(run_id=run.run_id, recorded_only=True)
    async for response in ScenarioServiceStub(channel).ResumeScenarioRun(request):
        yield response.generation if response.HasField("generation") else response.amendment


def _print_summary(run: common.CallRun) -> None:
    out = result_console()
    out.print(f"{one_line(run.run_id)}: {one_line(run.method)}, {_format_state(run)}", style="bold")
    out.print(f"  {one_line(run.title)}")
    if run.HasField("error"):
        reason = f"{run.error.message} ({run.error.reason})"
        error_console().print(f"error: {printable(reason)}", style="red")


def _format_state(run: common.CallRun) -> str:
    return enum_word(run.DESCRIPTOR.fields_by_name["state"], run.state)


@commands.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    found = asyncio.run(_fetch_runs(server, count))
    if as_json:
        for one in found:
            write_json(to_json(one))
        return
    table = start_table(("run", "begun", "call", "state", "text"), set())
    for one in found:
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        table.add_row(
            one_line(one.run_id), begun, one_line(one.method), _format_state(one), one_line(one.title)
        )
    if found:
        table_console().print(table)


@commands.command()
def show(run_id: RunId, server: Server = None, as_json: AsJson = False) -> None:
    """Show a run and its events so far: drafts, findings, result.

    With --json, each event is a line, with the whole draft in it.
    """
    asyncio.run(_show(run_id, server, as_json=as_json))


@commands.command()
def cancel(run_id: RunId, server: Server = None) -> None:
    """Stop a run. Its events remain stored."""
    asyncio.run(_cancel(run_id, server))
    result_console().print(f"{one_line(run_id)} is cancelled")


@commands.command()
def delete(run_id: RunId, server: Server = None) -> None:
    """Delete a run with its drafts."""
    asyncio.run(_delete(run_id, server))
    result_console().print(f"{one_line(run_id)} is deleted")
