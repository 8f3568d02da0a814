"""`peripety testgen run`, `list`, `show`, `cancel` and `delete`: stored runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.table import Table

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.failure import FOUND_WRONG
from peripety.cli.jsonify import enum_word, jsonify
from peripety.cli.output import errors, results, tables, write_json
from peripety.cli.policy_telling import counted
from peripety.cli.testgen_run import testgen_at
from peripety.cli.testgen_telling import (
    card_lines,
    error_line,
    quality_lines,
    reflection_line,
    short,
    stats_lines,
    verdict_line,
)
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["cancel", "delete", "list_runs", "run_tests", "show"]

_PHASE = pb.TestRunSummary.DESCRIPTOR.fields_by_name["phase"]
_STOPPED = pb.TestRunSummary.DESCRIPTOR.fields_by_name["stopped_by"]
_PATIENCE = 86_400.0
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


def list_runs(task_id: str, count: int, server: str | None, *, as_json: bool) -> None:
    """Print runs, newest first."""
    found = asyncio.run(_listed(task_id, count, server)).runs
    if as_json:
        for one in found:
            write_json(jsonify(one))
    elif found:
        tables().print(_table(found))


def show(run_id: str, server: str | None, *, as_json: bool) -> None:
    """Print a run: its tests with their results, its reflections, and its quality."""
    run = asyncio.run(_read(run_id, server))
    if as_json:
        write_json(jsonify(run))
        return
    out = results()
    out.print(f"{in_one_line(run.run_id)}: {short(run.task_description)}", style="bold")
    for test in run.tests:
        for line in card_lines(test):
            out.print(line)
        if test.HasField("verdict"):
            out.print(verdict_line(test.test_id, test.verdict))
    for reflection in run.reflections:
        out.print(reflection_line(reflection))
    for line in stats_lines(run.stats, run.categories):
        out.print(line)
    if run.HasField("error"):
        errors().print(error_line(run.error), style="red")


def cancel(run_id: str, server: str | None) -> None:
    """Stop a run. Its tests remain stored."""
    run = asyncio.run(_cancel(run_id, server))
    results().print(f"{in_one_line(run_id)} is stopped; {counted(len(run.tests), 'test')} stored")


def delete(run_id: str, server: str | None) -> None:
    """Delete a run with its tests."""
    asyncio.run(_delete(run_id, server))
    results().print(f"{in_one_line(run_id)} is deleted")


async def _run_tests(request: pb.RunTestsRequest, run_id: str, server: str | None, *, as_json: bool) -> int:
    ran: list[pb.TestGenEvent.TestRan] = []
    out = results()
    async with testgen_at(server) as stub:
        if request.HasField("subject"):
            found = (await stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run
            request.tests.extend(found.tests)
        async for response in stub.RunTests(request, timeout=_PATIENCE):
            if as_json:
                write_json(jsonify(response))
            elif response.HasField("test_ran"):
                told = response.test_ran
                good = told.verdict.status == pb.TEST_STATUS_PASSED
                out.print(verdict_line(told.test_id, told.verdict), style=None if good else "yellow")
            else:
                for line in quality_lines(response.measured, len(ran)):
                    out.print(line)
            if response.HasField("test_ran"):
                ran.append(response.test_ran)
    passed = sum(one.verdict.status == pb.TEST_STATUS_PASSED for one in ran)
    if not as_json:
        out.print(f"{passed:,} passed, {len(ran) - passed:,} failed", style="bold")
    return 0 if passed == len(ran) else FOUND_WRONG


async def _listed(task_id: str, count: int, server: str | None) -> pb.ListTestRunsResponse:
    async with testgen_at(server) as stub:
        return await stub.ListTestRuns(pb.ListTestRunsRequest(task_id=task_id, page_size=count))


async def _read(run_id: str, server: str | None) -> pb.TestRun:
    async with testgen_at(server) as stub:
        return (await stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run


async def _cancel(run_id: str, server: str | None) -> pb.TestRun:
    async with testgen_at(server) as stub:
        request = pb.CancelTestRunRequest(request_id=str(uuid4()), run_id=run_id)
        return (await stub.CancelTestRun(request)).run


async def _delete(run_id: str, server: str | None) -> None:
    async with testgen_at(server) as stub:
        await stub.DeleteTestRun(pb.DeleteTestRunRequest(request_id=str(uuid4()), run_id=run_id))


def _table(summaries: Iterable[pb.TestRunSummary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("run", "begun", "tests", "state", "task"):
        table.add_column(column, justify="right" if column == "tests" else "left", no_wrap=True)
    for one in summaries:
        begun = one.create_time.ToDatetime().isoformat(" ", "seconds")
        field, value = (_STOPPED, one.stopped_by) if one.stopped_by else (_PHASE, one.phase)
        state = enum_word(field, value).replace("_", " ")
        table.add_row(in_one_line(one.run_id), begun, f"{one.total_tests:,}", state, in_one_line(one.task_id))
    return table
