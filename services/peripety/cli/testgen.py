"""`peripety testgen`: the command group; run, list, show, cancel and delete stored runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.options import Server
from peripety.cli.output import (
    EXIT_FAILED,
    error_console,
    one_line,
    result_console,
    start_table,
    table_console,
    write_json,
)
from peripety.cli.render.policy import format_count
from peripety.cli.render.testgen import (
    format_card,
    format_error,
    format_fence,
    format_quality,
    format_reflection,
    format_stats,
    format_stop_reason,
    format_verdict,
    shorten,
)
from peripety.cli.testgen_export import RunId, testgen_at
from peripety.cli.testgen_export import commands as export_commands
from peripety.cli.testgen_run import (
    Command,
    Events,
    Function,
    Grpc,
    OpenApi,
    Policy,
    Port,
    Readable,
    Scenario,
    Unfenced,
    confirm_unfenced,
    make_subject,
)
from peripety.cli.testgen_run import commands as run_commands
from peripety.rpc.proto_json import enum_word, to_json
from peripety.testgen.subjects.http_service.document import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table


commands = typer.Typer(
    name="testgen",
    help="Generate tests and measure what they catch.",
    no_args_is_help=True,
)

stored = typer.Typer()


AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


_PHASE = pb.TestRunSummary.DESCRIPTOR.fields_by_name["phase"]
_RUN_TIMEOUT = 86_400.0
"""Time limit for running tests, in seconds: high, because the user sees the progress and can interrupt."""


async def _run_tests(
    request: pb.RunTestsRequest,
    run_id: str,
    server: str | None,
    *,
    as_json: bool,
    unfenced: bool,
) -> int:
    ran: list[pb.TestGenEvent.TestRan] = []
    out = result_console()
    async with testgen_at(server, unfenced=unfenced) as stub:
        if request.HasField("subject"):
            found = (await stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run
            request.tests.extend(found.tests)
        async for response in stub.RunTests(request, timeout=_RUN_TIMEOUT):
            if as_json:
                write_json(to_json(response))
            elif response.HasField("test_ran"):
                told = response.test_ran
                good = told.verdict.status == pb.TEST_STATUS_PASSED
                out.print(format_verdict(told.test_id, told.verdict), style=None if good else "yellow")
            else:
                for line in format_quality(response.measured, len(ran)):
                    out.print(line)
            if response.HasField("test_ran"):
                ran.append(response.test_ran)
    passed = sum(one.verdict.status == pb.TEST_STATUS_PASSED for one in ran)
    if not as_json:
        out.print(f"{passed:,} passed, {len(ran) - passed:,} failed", style="bold")
    return 0 if passed == len(ran) else EXIT_FAILED


async def _fetch_runs(task_id: str, count: int, server: str | None) -> pb.ListTestRunsResponse:
    async with testgen_at(server) as stub:
        return await stub.ListTestRuns(pb.ListTestRunsRequest(task_id=task_id, page_size=count))


async def _fetch_run(run_id: str, server: str | None) -> pb.TestRun:
    async with testgen_at(server) as stub:
        return (await stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run


async def _cancel(run_id: str, server: str | None) -> pb.TestRun:
    async with testgen_at(server) as stub:
        request = pb.CancelTestRunRequest(request_id=str(uuid4()), run_id=run_id)
        return (await stub.CancelTestRun(request)).run


async def _delete(run_id: str, server: str | None) -> None:
    async with testgen_at(server) as stub:
        await stub.DeleteTestRun(pb.DeleteTestRunRequest(request_id=str(uuid4()), run_id=run_id))


def _runs_table(summaries: Sequence[pb.TestRunSummary]) -> Table:
    has_tasks = any(one.task_id for one in summaries)
    table = start_table(("run", "begun", "tests", "state", *(["task"] if has_tasks else [])), {"tests"})
    for one in summaries:
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        reason = format_stop_reason(one.stopped_by)
        state = f"ended: {reason}" if reason else enum_word(_PHASE, one.phase).replace("_", " ")
        task = [one_line(one.task_id)] if has_tasks else []
        table.add_row(one_line(one.run_id), begun, f"{one.total_tests:,}", state, *task)
    return table


@stored.command()
def run(
    run_id: RunId,
    argv: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="With --command: the command."),
    ] = None,
    scenario: Scenario = None,
    policy: Policy = None,
    command: Command = False,
    function: Function = None,
    openapi: OpenApi = None,
    grpc: Grpc = False,
    port: Port = DEFAULT_PORT,
    environment: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Working directory of the command, or of the function."),
    ] = None,
    readable: Readable = None,
    unfenced: Unfenced = False,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Number of times to run each test.")] = 5,
    mutation: Annotated[bool, typer.Option("--mutation", help="Also measure the mutation score.")] = False,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Run the tests of a run again. No model is called.

    Exit code 0 if all tests pass, 1 if one fails. Without options the tests run on their original subject
    and the run stores the results; the options select another subject.

    \b
    Examples:
      peripety testgen run RUN
      peripety testgen run RUN --policy build/changed --mutation
      peripety testgen run RUN --environment . --command -- python3 tool.py
    """  # noqa: D301 - keeps the lines of the examples apart
    if argv and not command and function is None:
        raise typer.BadParameter("a command needs --command")
    if command and function is not None:
        raise typer.BadParameter("--command and --function exclude each other; use one")
    words = argv or [] if command or function is not None else None
    subject = make_subject(
        scenario, policy, words, environment, readable or (), function, openapi, port, grpc=grpc
    )
    unfenced = confirm_unfenced(subject, server, unfenced=unfenced)
    request = pb.RunTestsRequest(request_id=str(uuid4()), repetitions=repeat, mutation=mutation)
    if subject is None:
        request.run_id = run_id
    else:
        request.subject.CopyFrom(subject)
    raise typer.Exit(asyncio.run(_run_tests(request, run_id, server, as_json=as_json, unfenced=unfenced)))


@stored.command("list")
def list_(
    task_id: Annotated[
        str, typer.Option(metavar="NAME", help="Show only runs of this task. [default: all tasks]")
    ] = "",
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    found = asyncio.run(_fetch_runs(task_id, count, server)).runs
    if as_json:
        for one in found:
            write_json(to_json(one))
    elif found:
        table_console().print(_runs_table(found))


@stored.command()
def show(run_id: RunId, server: Server = None, as_json: AsJson = False) -> None:
    """Show the tests of a run, their results and quality."""
    run = asyncio.run(_fetch_run(run_id, server))
    if as_json:
        write_json(to_json(run))
        return
    out = result_console()
    out.print(f"{one_line(run.run_id)}: {shorten(run.task_description)}", style="bold")
    if run.HasField("fenced"):
        out.print(format_fence(is_fenced=run.fenced))
    for test in run.tests:
        for line in format_card(test):
            out.print(line)
        if test.HasField("verdict"):
            out.print(format_verdict(test.test_id, test.verdict))
    for reflection in run.reflections:
        out.print(format_reflection(reflection))
    for line in format_stats(run.stats, run.categories):
        out.print(line)
    if run.HasField("error"):
        error_console().print(format_error(run.error), style="red")


@stored.command()
def cancel(run_id: RunId, server: Server = None) -> None:
    """Stop a run. Its tests remain stored."""
    run = asyncio.run(_cancel(run_id, server))
    result_console().print(f"{one_line(run_id)} is stopped; {format_count(len(run.tests), 'test')} stored")


@stored.command()
def delete(run_id: RunId, server: Server = None) -> None:
    """Delete a run with its tests."""
    asyncio.run(_delete(run_id, server))
    result_console().print(f"{one_line(run_id)} is deleted")


for part in (run_commands, export_commands, stored):
    commands.add_typer(part)
