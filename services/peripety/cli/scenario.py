"""Scenario command group; list, show, delete.

Commands about scenario specifications, and their options.

`peripety scenarios`: list, show and delete stored scenarios.

Commands and options of `peripety scenarios`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from rich.table import Table

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.options import (
    Attempts,
    Description,
    MaxCost,
    MaxTime,
    MaxTokens,
    Model,
    NewSeed,
    Persona,
    Seed,
    Server,
)
from peripety.cli.output import one_line, result_console, table_console, write_bytes, write_json
from peripety.cli.proto_json import to_json
from peripety.cli.render.console import format_dry_run
from peripety.scenario.rule_text import describe_content, describe_part
from peripety.scenario.spec_sections import split_parts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


scenarios = typer.Typer()


class LevelOption(Enum):
    """Validation levels of a specification."""

    SCHEMA = "schema"
    STATIC = "static"
    DRY_RUN = "dry-run"
    CERTIFICATE = "certificate"


@scenarios.command()
def generate(
    description: Description = None,
    seed: NewSeed = None,
    level: Annotated[
        LevelOption,
        typer.Option(help="Checks that the specification must pass."),
    ] = LevelOption.CERTIFICATE,
    model: Model = "",
    attempts: Attempts = 4,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Ignore a cached specification for the same description."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print only the specification, on a terminal too."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the specification to a file."),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Generate N valid random specifications instead, one per line.",
        ),
    ] = None,
) -> None:
    """Write a specification from a description, or many at random.

    Writes to standard output or to a file; on a terminal, prints a summary instead. Exit code 0 if the
    specification
    passed its checks, 1 if no draft did: the findings give the reasons.
    """
    if random is not None:
        if description is not None or model:
            raise typer.BadParameter(
                "--random cannot be combined with --description or --model; leave them out",
            )
        from peripety.cli.scenario_generate import generate_random  # noqa: PLC0415 - loads the engine

        generate_random(random, seed=seed or 0, out=out)
        return
    from peripety.cli import scenario_generate as command  # noqa: PLC0415 - loads the services

    wishes = command.GenerationSettings(
        level.name,
        seed,
        model,
        attempts,
        max_tokens or 0,
        max_cost or 0.0,
        max_time or 0.0,
        refresh,
    )
    command.generate_specification(description, wishes, as_json=as_json, out=out)


@scenarios.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="JSON, JSON Lines or Parquet (columns spec, id) file, or folder; use - for standard input.",
        ),
    ],
    level: Annotated[LevelOption, typer.Option(help="Checks to run.")] = LevelOption.STATIC,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Number of threads. [default: 2 per core]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store verdicts in this file and skip specifications that have one.",
        ),
    ] = None,
    persona: Annotated[Persona, typer.Option(help="Persona that plays the dry-run.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            min=64,
            max=100_000,
            help="Maximum runs of a persona. [default: as many as the verdict needs]",
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="Maximum turns of a run. [default: the scenario's horizon]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each verdict as a line of JSON.")] = False,
) -> None:
    """Check specifications.

    Exit code 0 if all are valid, 1 if one is not, 2 if one cannot be read. Verdicts are printed in any order,
    each with
    its file and line. Identical specifications are checked once.
    """
    from peripety.cli import scenario_validate as command  # noqa: PLC0415 - loads the engine

    options = command.batch_options(level.name, persona.value, seed, max_runs, horizon)
    raise typer.Exit(command.validate_sources(files, options, jobs=jobs, resume=resume, as_json=as_json))


@scenarios.command("compile")
def compile_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    version_of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Store the result as the latest version of this scenario."),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the stored scenario as one line of JSON."),
    ] = False,
) -> None:
    """Validate, dry-run and store a specification.

    If only the dry-run budget is missed, numbers are adjusted first. Exit code 0 if it is stored, 1 if it is
    rejected.
    `peripety scenarios` shows what is stored.
    """
    from peripety.cli.scenario_generate import compile_specification  # noqa: PLC0415 - loads the services

    compile_specification(file, version_of=version_of, server=server, as_json=as_json)


@scenarios.command()
def amend(
    scenario_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the scenario; see `peripety scenarios list`."),
    ],
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="Requested change, in any language; use - for standard input."),
    ],
    level: Annotated[
        LevelOption | None,
        typer.Option(
            help="Checks that the result must pass. [default: those that the current version passed]",
        ),
    ] = None,
    model: Model = "",
    attempts: Attempts = 4,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the new version and its differences as one line of JSON."),
    ] = False,
) -> None:
    """Change a stored scenario by a description.

    A model makes the change, or rules if no model is configured; the result is a new version. Exit code 0 if
    the
    scenario was changed, 1 if it was not.
    """
    from peripety.cli import scenario_generate as command  # noqa: PLC0415 - loads the services
    from peripety.cli.output import make_budget  # noqa: PLC0415

    caps = make_budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0)
    order = command.amend_request(
        scenario_id,
        text,
        level.name if level else "UNSPECIFIED",
        model,
        attempts,
        caps,
    )
    command.amend_stored(order, server, as_json=as_json)


@scenarios.command("dry-run")
def dry_run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of games to simulate.")] = 200,
    persona: Annotated[Persona, typer.Option(help="Persona that plays.")] = Persona.RANDOM,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> None:
    """Simulate a specification; show loss rate and reasons."""
    from peripety.cli.scenario_analyze import dry_run_specification  # noqa: PLC0415 - loads the engine

    dry_run_specification(file, runs=runs, persona=persona.value, seed=seed, as_json=as_json)


@scenarios.command()
def balance(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    target: Annotated[
        str,
        typer.Option(metavar="LOW-HIGH", help="Target range of the loss rate in percent, such as 30-40."),
    ],
    persona: Annotated[Persona, typer.Option(help="Persona that plays.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of games that confirm the result. [default: 10,000]"),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one line of JSON that includes the specification."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the specification to a file."),
    ] = None,
) -> None:
    """Tune numbers of a specification to a loss rate.

    Changes as few numbers as possible and no rules. Exit code 0 if it is balanced, 1 if the target is out of
    reach.
    """
    from peripety.cli import scenario_analyze as command  # noqa: PLC0415 - loads the engine

    options = command.balance_options(persona.value, seed, max_runs)
    raise typer.Exit(
        command.balance_specification(file, command.parse_target(target), options, as_json=as_json, out=out),
    )


@scenarios.command()
def certify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    persona: Annotated[
        list[Persona] | None,
        typer.Option(help="Persona to measure besides random; may be repeated. [default: all personas]"),
    ] = None,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            min=64,
            max=9_604,
            help="Maximum runs of a persona. [default: enough for a margin of 1 point]",
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="Maximum turns of a run. [default: the scenario's horizon]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the certificate.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="CERT", help="Write the certificate to a file."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Write a report with plots to a file."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="CERT", help="Recompute this certificate and compare."),
    ] = None,
) -> None:
    """Measure how fair a specification is.

    Exit code 0 if it is certified, 1 if it is rejected. With --check: 0 if the certificate matches FILE, 1 if
    something
    differs or the check is inconclusive.
    """
    from peripety.cli import scenario_analyze as command  # noqa: PLC0415 - loads the engine

    if check is not None:
        if any(option is not None for option in (persona, seed, max_runs, horizon, out, html)):
            raise typer.BadParameter(
                "--check can only be combined with FILE and --json; the certificate holds its other options",
            )
        raise typer.Exit(command.verify_certificate(check, file, as_json=as_json))
    options = command.certificate_options([chosen.value for chosen in persona or ()], seed, max_runs, horizon)
    raise typer.Exit(command.certify_specification(file, options, as_json=as_json, out=out, html=html))


@scenarios.command()
def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ID",
            help="Specification or id of a stored scenario; use - for standard input.",
        ),
    ],
    svg: Annotated[
        Path | None,
        typer.Option(metavar="DRAWING", help="Write the graph to a file, as SVG."),
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print only a Mermaid flowchart.")] = False,
    runs: Annotated[
        int,
        typer.Option(
            min=0,
            max=100_000,
            help="Number of games that measure how often each part is active; 0 for none.",
        ),
    ] = 1_024,
    persona: Annotated[Persona, typer.Option(help="Persona that plays the games.")] = Persona.RANDOM,
    seed: Seed = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the graph as one line of JSON.")] = False,
) -> None:
    """Show the dependency graph of a scenario.

    Includes how often each rule is active and where games end.
    """
    from peripety.cli import scenario_analyze as command  # noqa: PLC0415 - loads the engine
    from peripety.scenario.types import DryRunOptions  # noqa: PLC0415 - loads the engine

    if mermaid and as_json:
        raise typer.BadParameter("--mermaid cannot be combined with --json; leave one out")
    played = DryRunOptions(persona.value, seed, runs) if runs else None
    command.print_graph(source, server, played, drawing=svg, as_mermaid=mermaid, as_json=as_json)


_SHOWN_HASH = 12


def print_scenarios(count: int, server: str | None, *, as_json: bool) -> None:
    """Print the latest versions of stored scenarios, newest first."""
    found = asyncio.run(_fetch_scenarios(count, server))
    if as_json:
        for one in found.scenarios:
            write_json(to_json(one))
    elif found.scenarios:
        table_console().print(_scenarios_table("scenario", found.scenarios))


def print_scenario(scenario_id: str, spec_hash: str | None, server: str | None, *, as_json: bool) -> None:
    """Print a stored scenario rule by rule; or only its specification, as JSON."""
    scenario, versions = asyncio.run(_fetch_scenario(scenario_id, spec_hash or "", server))
    if as_json:
        write_bytes(scenario.spec)
        return
    out = result_console()
    out.print(one_line(scenario.name), style="bold")
    for part in split_parts(json.loads(scenario.spec)):
        out.print(
            f"  {one_line(describe_part(part.name))}: {one_line(describe_content(part.name, part.value))}",
        )
    out.print(f"dry-run: {format_dry_run(scenario.dry_run)}")
    for edit in scenario.edits:
        out.print(f"  moved for that: {one_line(edit.summary)}")
    table_console().print(_scenarios_table("version", versions))


def delete_scenario(scenario_id: str, server: str | None) -> None:
    """Delete a stored scenario with all its versions."""
    asyncio.run(_delete(scenario_id, server))
    result_console().print(f"{one_line(scenario_id)} is deleted")


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
    table = Table(box=None, pad_edge=False)
    for column in (what, "stored", "lost", "certificate", "name"):
        table.add_column(column, justify="right" if column == "lost" else "left", no_wrap=True)
    for one in summaries:
        table.add_row(
            one.scenario_id if what == "scenario" else one.spec_hash,
            one.create_time.ToDatetime().isoformat(" ", "seconds"),
            f"{one.fail_rate:.1%}",
            one.certificate_hash[:_SHOWN_HASH] or "none",
            one_line(one.name),
        )
    return table


stored = typer.Typer(name="scenarios", help="List, show and delete stored scenarios.", no_args_is_help=True)

ScenarioId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id of the scenario; see `peripety scenarios list`."),
]


@stored.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each entry as a line of JSON.")] = False,
) -> None:
    """List the latest versions of scenarios, newest first."""
    print_scenarios(count, server, as_json=as_json)


@stored.command()
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
    print_scenario(scenario_id, version, server, as_json=as_json)


@stored.command()
def delete(scenario_id: ScenarioId, server: Server = None) -> None:
    """Delete a scenario with all versions. Its sessions continue."""
    delete_scenario(scenario_id, server)
