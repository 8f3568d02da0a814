"""`peripety scenarios`: list, show and delete stored scenarios."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.options import (
    Server,
)
from peripety.cli.output import (
    SHOWS_EVERYTHING,
    one_line,
    person_console,
    result_console,
    start_table,
    table_console,
    write_bytes,
    write_json,
)
from peripety.cli.render.console import format_dry_run
from peripety.engine.rule_text import describe_content, describe_part
from peripety.engine.spec_sections import split_parts
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from rich.table import Table

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


commands = typer.Typer(name="scenarios", help="List, show and delete stored scenarios.", no_args_is_help=True)


_SHOWN_HASH = 12


@asynccontextmanager
async def _scenarios_at(server: str | None) -> AsyncIterator[ScenarioServiceAsyncStub]:
    async with services_at(server, "gateway", "scenarios") as channel:
        yield ScenarioServiceStub(channel)


async def _fetch_scenarios(count: int, server: str | None) -> pb.ListScenariosResponse:
    async with _scenarios_at(server) as stub:
        return await stub.ListScenarios(pb.ListScenariosRequest(page_size=count))


async def _fetch_scenario(
    scenario_id: str,
    spec_hash: str,
    server: str | None,
) -> tuple[pb.CompiledScenario, Iterable[pb.ScenarioSummary]]:
    """Return a version of a scenario, and summaries of all versions."""
    async with _scenarios_at(server) as stub:
        wanted = pb.GetScenarioRequest(scenario_id=scenario_id, spec_hash=spec_hash)
        scenario = (await stub.GetScenario(wanted)).scenario
        versions = pb.ListScenarioVersionsRequest(scenario_id=scenario_id)
        return scenario, (await stub.ListScenarioVersions(versions)).versions


async def _delete(scenario_id: str, server: str | None) -> None:
    async with _scenarios_at(server) as stub:
        await stub.DeleteScenario(pb.DeleteScenarioRequest(request_id=str(uuid4()), scenario_id=scenario_id))


def _scenarios_table(what: str, summaries: Iterable[pb.ScenarioSummary]) -> Table:
    """Return a table with a row per scenario, or per version of one."""
    table = start_table((what, "stored", "lost", "certificate", "name"), {"lost"})
    for one in summaries:
        table.add_row(
            one.scenario_id if what == "scenario" else one.spec_hash,
            one.create_time.ToDatetime().isoformat(" ", "seconds"),
            f"{one.fail_rate:.1%}",
            one.certificate_hash[:_SHOWN_HASH] or "none",
            one_line(one.name),
        )
    return table


ScenarioId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id of the scenario; see `peripety scenarios list`."),
]


@commands.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each entry as a line of JSON.")] = False,
) -> None:
    """List the latest versions of scenarios, newest first."""
    found = asyncio.run(_fetch_scenarios(count, server))
    if as_json:
        for one in found.scenarios:
            write_json(to_json(one))
    elif found.scenarios:
        table_console().print(_scenarios_table("scenario", found.scenarios))


@commands.command()
def show(
    scenario_id: ScenarioId,
    version: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="Version to show. [default: the latest]"),
    ] = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the specification.")] = False,
) -> None:
    """Show a scenario: its rules, its dry-run, its versions."""
    scenario, versions = asyncio.run(_fetch_scenario(scenario_id, version or "", server))
    if as_json:
        if sys.stdout.isatty():
            person_console().print(SHOWS_EVERYTHING)
        write_bytes(scenario.spec)
        return
    out = result_console()
    out.print(SHOWS_EVERYTHING)
    out.print(one_line(scenario.name), style="bold")
    for part in split_parts(json.loads(scenario.spec)):
        # The author of the solutions knows them, and no other reader should.
        content = (
            f"{len(part.value)}" if part.name == ("solutions",) else describe_content(part.name, part.value)
        )
        out.print(f"  {one_line(describe_part(part.name))}: {one_line(content)}")
    out.print(f"dry-run: {format_dry_run(scenario.dry_run)}")
    for edit in scenario.edits:
        out.print(f"  moved for that: {one_line(edit.summary)}")
    table_console().print(_scenarios_table("version", versions))


@commands.command()
def delete(scenario_id: ScenarioId, server: Server = None) -> None:
    """Delete a scenario with all versions. Its sessions continue."""
    asyncio.run(_delete(scenario_id, server))
    result_console().print(f"{one_line(scenario_id)} is deleted")
