"""`peripety scenarios`: list, show and delete stored scenarios."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.table import Table

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.cli.embedded import services_at
from peripety.cli.jsonify import jsonify
from peripety.cli.output import results, tables, write_bytes, write_json
from peripety.cli.story import dry_run_line
from peripety.cli.text import in_one_line
from peripety.scenarios.parts import parts
from peripety.scenarios.telling import content, subject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub

__all__ = ["delete", "list_scenarios", "show"]

_SHOWN_HASH = 12


def list_scenarios(count: int, server: str | None, *, as_json: bool) -> None:
    """Print the latest versions of stored scenarios, newest first."""
    found = asyncio.run(_listed(count, server))
    if as_json:
        for one in found.scenarios:
            write_json(jsonify(one))
    elif found.scenarios:
        tables().print(_table("scenario", found.scenarios))


def show(scenario_id: str, spec_hash: str | None, server: str | None, *, as_json: bool) -> None:
    """Print a stored scenario rule by rule; or only its specification, as JSON."""
    scenario, versions = asyncio.run(_read(scenario_id, spec_hash or "", server))
    if as_json:
        write_bytes(scenario.spec)
        return
    out = results()
    out.print(in_one_line(scenario.name), style="bold")
    for part in parts(json.loads(scenario.spec)):
        out.print(f"  {in_one_line(subject(part.name))}: {in_one_line(content(part.name, part.value))}")
    out.print(f"dry-run: {dry_run_line(scenario.dry_run)}")
    for edit in scenario.edits:
        out.print(f"  moved for that: {in_one_line(edit.summary)}")
    tables().print(_table("version", versions))


def delete(scenario_id: str, server: str | None) -> None:
    """Delete a stored scenario with all its versions."""
    asyncio.run(_delete(scenario_id, server))
    results().print(f"{in_one_line(scenario_id)} is deleted")


@asynccontextmanager
async def _scenarios(server: str | None) -> AsyncIterator[ScenarioServiceAsyncStub]:
    async with services_at(server, "gateway", "scenarios") as channel:
        yield ScenarioServiceStub(channel)


async def _listed(count: int, server: str | None) -> pb.ListScenariosResponse:
    async with _scenarios(server) as stub:
        return await stub.ListScenarios(pb.ListScenariosRequest(page_size=count))


async def _read(
    scenario_id: str, spec_hash: str, server: str | None
) -> tuple[pb.CompiledScenario, Iterable[pb.ScenarioSummary]]:
    """Return a version of a scenario, and summaries of all versions."""
    async with _scenarios(server) as stub:
        wanted = pb.GetScenarioRequest(scenario_id=scenario_id, spec_hash=spec_hash)
        scenario = (await stub.GetScenario(wanted)).scenario
        versions = pb.ListScenarioVersionsRequest(scenario_id=scenario_id)
        return scenario, (await stub.ListScenarioVersions(versions)).versions


async def _delete(scenario_id: str, server: str | None) -> None:
    async with _scenarios(server) as stub:
        await stub.DeleteScenario(pb.DeleteScenarioRequest(request_id=str(uuid4()), scenario_id=scenario_id))


def _table(what: str, summaries: Iterable[pb.ScenarioSummary]) -> Table:
    """Return a table with a row per scenario, or per version of one."""
    table = Table(box=None, pad_edge=False)
    for column in (what, "stored", "lost", "certificate", "name"):
        table.add_column(column, justify="right" if column == "lost" else "left", no_wrap=True)
    for one in summaries:
        table.add_row(
            one.scenario_id if what == "scenario" else one.spec_hash,
            one.create_time.ToDatetime().isoformat(" ", "seconds"),
            f"{one.fail_rate:.1%}",
            one.certificate_hash[:_SHOWN_HASH] or "none",
            in_one_line(one.name),
        )
    return table
