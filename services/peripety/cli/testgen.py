"""Testgen command group; list, show, rerun.

Commands and options of `peripety testgen`.

`peripety testgen run`, `list`, `show`, `cancel` and `delete`: stored runs.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from rich.table import Table

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.options import (
    MAX_COUNT,
    MAX_SECONDS,
    MAX_TOKENS,
    Model,
    Server,
)
from peripety.cli.output import (
    EXIT_FAILED,
    error_console,
    one_line,
    result_console,
    table_console,
    write_json,
)
from peripety.cli.proto_json import enum_word, to_json
from peripety.cli.render.policy import format_count
from peripety.cli.render.testgen import (
    format_card,
    format_error,
    format_quality,
    format_reflection,
    format_stats,
    format_verdict,
    shorten,
)
from peripety.cli.testgen_run import testgen_at

if TYPE_CHECKING:
    from collections.abc import Iterable


testgen = typer.Typer(
    name="testgen",
    help="Write tests for a task in rounds, run them, and measure what they catch.",
    no_args_is_help=True,
)


class ContextOption(Enum):
    """Kinds of tasks that tests are generated for."""

    BENCHMARK = "benchmark"
    PROMPT = "prompt"
    SCENARIO = "scenario"
    POLICY = "policy"
    CUSTOM = "custom"


class FormatOption(Enum):
    """Formats of a test file."""

    PYTEST = "pytest"
    JSON = "json"
    JUNIT = "junit"


RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety testgen list`.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write the tests to this file: .py, .json or .xml."),
]
As = Annotated[
    FormatOption | None,
    typer.Option("--format", help="Format of the file. [default: derived from its name]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]
Events = Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")]
Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|ID",
        help="Run the tests on this scenario: a specification, or the id of a stored scenario.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="Run the tests on this policy: a compiled folder, a document, or the id of a stored policy.",
    ),
]
Command = Annotated[
    bool,
    typer.Option(
        "--command",
        help="Run the tests on the command after --, without network; see docs/how-to/generate-tests.md.",
    ),
]
Environment = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Directory to describe to the model; the command runs in copies of it.",
    ),
]


@testgen.command()
def generate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DESCRIPTION] [-- ARGV...]",
            help="Description of what to test (use - for standard input); with --command, also the command.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the description; use - for standard input."),
    ] = None,
    context: Annotated[
        ContextOption | None,
        typer.Option(help="Kind of the task. [default: derived from the subject]"),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=TEXT]",
            help="Custom category and its description; may be repeated. Replaces the default categories.",
        ),
    ] = None,
    scenario: Scenario = None,
    policy: Policy = None,
    command: Command = False,
    environment: Environment = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_TOKENS, help="Maximum tokens, input and output. [default: 50000]"),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(min=1e-3, max=MAX_SECONDS, metavar="SECONDS", help="Maximum time. [default: 180]"),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="Maximum number of rounds. [default: 17]"),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="Number of tests at which the run stops. [default: 30]"),
    ] = None,
    no_baseline: Annotated[
        bool,
        typer.Option("--no-baseline", help="Leave out the tests that are derived without a model."),
    ] = False,
    parallel: Annotated[
        bool,
        typer.Option("--parallel", help="Process all categories at the same time."),
    ] = False,
    model: Model = "",
    task_id: Annotated[str, typer.Option(metavar="NAME", help="Name of the task.")] = "",
    out: Out = None,
    format_: As = None,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Generate tests from a description.

    Shows each test as soon as it exists. Ctrl-C stops the run without losing tests; `peripety testgen
    resume` continues it.

    \b
    Examples:
      peripety testgen generate "A parser of dates" -o tests.json
      peripety testgen generate "It stays winnable" --scenario examples/scenario.json -o test_it.py
      peripety testgen generate "Only the folder" --policy build/office --target 20
      peripety testgen generate --file task.md --environment . --command -- python3 tool.py
    """  # noqa: D301 - keeps the lines of the examples apart
    from peripety.api.testgen.v1 import testgen_pb2 as pb  # noqa: PLC0415 - loads protobuf
    from peripety.cli import testgen_run as given  # noqa: PLC0415
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    named = [*(words or ())]
    about = named.pop(0) if named and file is None else None
    if named and not command:
        raise typer.BadParameter(f"unexpected argument {named[0]}: quote the description, or add --command")
    wanted = running.output_settings(server, out, format_.value if format_ else None, as_json=as_json)
    task = given.read_description(about, file)
    subject = given.make_subject(scenario, policy, named if command else None, environment)
    limits = given.RunLimits(max_tokens, max_time, max_rounds, target, not no_baseline, parallel)
    request = pb.GenerateTestsRequest(
        task_id=task_id,
        task_description=task,
        context=given.task_context(context.value if context else None, subject, own=bool(category)),
        categories=given.parse_categories(category or ()),
        config=limits.to_config(),
        subject=subject,
        model=model,
        environment=None if environment is None else given.describe_environment(environment, task),
    )
    raise typer.Exit(running.generate_tests(request, wanted))


@testgen.command()
def resume(
    run_id: RunId,
    out: Out = None,
    format_: As = None,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Show a run from its beginning and continue it."""
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    wanted = running.output_settings(server, out, format_.value if format_ else None, as_json=as_json)
    raise typer.Exit(running.resume_run(run_id, wanted))


@testgen.command()
def run(
    run_id: RunId,
    argv: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGV...]", help="With --command: the command."),
    ] = None,
    scenario: Scenario = None,
    policy: Policy = None,
    command: Command = False,
    environment: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Working directory of the command."),
    ] = None,
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
    from peripety.cli import testgen_run as given  # noqa: PLC0415 - loads protobuf

    if argv and not command:
        raise typer.BadParameter("a command needs --command")
    subject = given.make_subject(scenario, policy, argv or [] if command else None, environment)
    raise typer.Exit(run_tests(run_id, subject, repeat, server, mutation=mutation, as_json=as_json))


@testgen.command("list")
def list_(
    task_id: Annotated[str, typer.Option(metavar="NAME", help="Show only runs of this task.")] = "",
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    print_runs(task_id, count, server, as_json=as_json)


@testgen.command()
def show(run_id: RunId, server: Server = None, as_json: AsJson = False) -> None:
    """Show the tests of a run, their results and quality."""
    print_run(run_id, server, as_json=as_json)


@testgen.command()
def export(
    run_id: RunId,
    out: Out = None,
    format_: As = None,
    counting_only: Annotated[
        bool,
        typer.Option("--counting-only", help="Leave out tests that are unstable, unsound or redundant."),
    ] = False,
    server: Server = None,
) -> None:
    """Export the tests of a run: pytest, JSON or JUnit."""
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    running.export_tests(run_id, server, out, format_.value if format_ else None, counting_only=counting_only)


@testgen.command()
def cancel(run_id: RunId, server: Server = None) -> None:
    """Stop a run. Its tests remain stored."""
    cancel_run(run_id, server)


@testgen.command()
def delete(run_id: RunId, server: Server = None) -> None:
    """Delete a run with its tests."""
    delete_run(run_id, server)


_PHASE = pb.TestRunSummary.DESCRIPTOR.fields_by_name["phase"]
_STOPPED = pb.TestRunSummary.DESCRIPTOR.fields_by_name["stopped_by"]
_RUN_TIMEOUT = 86_400.0
"""Time limit for running tests, in seconds: high, because the user sees the progress and can interrupt."""


def run_tests(
    run_id: str,
    subject: pb.Subject | None,
    repetitions: int,
    server: str | None,
    *,
    mutation: bool,
    as_json: bool,
) -> int:
    """Run the tests of a run again; return 0 if all pass, else 1.

    Args:
        run_id: the run.
        subject: the subject to test; None for that of the run, which then stores the results.
        repetitions: number of executions of each test.
        server: `host:port` of a server; None for this process and its database.
        mutation: True to measure the mutation score as well.
        as_json: True to print events as lines of JSON.
    """
    request = pb.RunTestsRequest(request_id=str(uuid4()), repetitions=repetitions, mutation=mutation)
    if subject is None:
        request.run_id = run_id
    else:
        request.subject.CopyFrom(subject)
    return asyncio.run(_run_tests(request, run_id, server, as_json=as_json))


def print_runs(task_id: str, count: int, server: str | None, *, as_json: bool) -> None:
    """Print runs, newest first."""
    found = asyncio.run(_fetch_runs(task_id, count, server)).runs
    if as_json:
        for one in found:
            write_json(to_json(one))
    elif found:
        table_console().print(_runs_table(found))


def print_run(run_id: str, server: str | None, *, as_json: bool) -> None:
    """Print a run: its tests with their results, its reflections, and its quality."""
    run = asyncio.run(_fetch_run(run_id, server))
    if as_json:
        write_json(to_json(run))
        return
    out = result_console()
    out.print(f"{one_line(run.run_id)}: {shorten(run.task_description)}", style="bold")
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


def cancel_run(run_id: str, server: str | None) -> None:
    """Stop a run. Its tests remain stored."""
    run = asyncio.run(_cancel(run_id, server))
    result_console().print(f"{one_line(run_id)} is stopped; {format_count(len(run.tests), 'test')} stored")


def delete_run(run_id: str, server: str | None) -> None:
    """Delete a run with its tests."""
    asyncio.run(_delete(run_id, server))
    result_console().print(f"{one_line(run_id)} is deleted")


async def _run_tests(request: pb.RunTestsRequest, run_id: str, server: str | None, *, as_json: bool) -> int:
    ran: list[pb.TestGenEvent.TestRan] = []
    out = result_console()
    async with testgen_at(server) as stub:
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


def _runs_table(summaries: Iterable[pb.TestRunSummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("run", "begun", "tests", "state", "task"):
        table.add_column(column, justify="right" if column == "tests" else "left", no_wrap=True)
    for one in summaries:
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        field, value = (_STOPPED, one.stopped_by) if one.stopped_by else (_PHASE, one.phase)
        state = enum_word(field, value).replace("_", " ")
        table.add_row(one_line(one.run_id), begun, f"{one.total_tests:,}", state, one_line(one.task_id))
    return table
