"""Commands about scenario specifications, and their options."""

from __future__ import annotations

from enum import Enum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

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

__all__ = ["scenarios"]

scenarios = typer.Typer()


class Level(Enum):
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
        Level, typer.Option(help="Checks that the specification must pass.")
    ] = Level.CERTIFICATE,
    model: Model = "",
    attempts: Attempts = 4,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ignore a cached specification for the same description.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only the specification, on a terminal too.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the specification to a file.")
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Generate N valid random specifications instead, one per line."
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
                "--random cannot be combined with --description or --model; leave them out"
            )
        from peripety.cli.random_specs import generate_random  # noqa: PLC0415 - loads the engine

        generate_random(random, seed=seed or 0, out=out)
        return
    from peripety.cli import generate as command  # noqa: PLC0415 - loads the services

    wishes = command.Wishes(
        level.name, seed, model, attempts, max_tokens or 0, max_cost or 0.0, max_time or 0.0, refresh
    )
    command.generate(description, wishes, as_json=as_json, out=out)


@scenarios.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="JSON, JSON Lines or Parquet (columns spec, id) file, or folder; use - for standard input.",
        ),
    ],
    level: Annotated[Level, typer.Option(help="Checks to run.")] = Level.STATIC,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=256, help="Number of threads. [default: 2 per core]")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Store verdicts in this file and skip specifications that have one."
        ),
    ] = None,
    persona: Annotated[Persona, typer.Option(help="Persona that plays the dry-run.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            min=64, max=100_000, help="Maximum runs of a persona. [default: as many as the verdict needs]"
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
    from peripety.cli import validate as command  # noqa: PLC0415 - loads the engine

    options = command.options(level.name, persona.value, seed, max_runs, horizon)
    raise typer.Exit(command.validate(files, options, jobs=jobs, resume=resume, as_json=as_json))


@scenarios.command("compile")
def compile_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    version_of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Store the result as the latest version of this scenario."),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the stored scenario as one line of JSON.")
    ] = False,
) -> None:
    """Validate, dry-run and store a specification.

    If only the dry-run budget is missed, numbers are adjusted first. Exit code 0 if it is stored, 1 if it is
    rejected.
    `peripety scenarios` shows what is stored.
    """
    from peripety.cli.compile import compile_specification  # noqa: PLC0415 - loads the services

    compile_specification(file, version_of=version_of, server=server, as_json=as_json)


@scenarios.command()
def amend(
    scenario_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the scenario; see `peripety scenarios list`.")
    ],
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="Requested change, in any language; use - for standard input."),
    ],
    level: Annotated[
        Level | None,
        typer.Option(
            help="Checks that the result must pass. [default: those that the current version passed]"
        ),
    ] = None,
    model: Model = "",
    attempts: Attempts = 4,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the new version and its differences as one line of JSON.")
    ] = False,
) -> None:
    """Change a stored scenario by a description.

    A model makes the change, or rules if no model is configured; the result is a new version. Exit code 0 if
    the
    scenario was changed, 1 if it was not.
    """
    from peripety.cli import amend as command  # noqa: PLC0415 - loads the services
    from peripety.cli.spending import budget  # noqa: PLC0415

    caps = budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0)
    order = command.order(scenario_id, text, level.name if level else "UNSPECIFIED", model, attempts, caps)
    command.amend(order, server, as_json=as_json)


@scenarios.command("dry-run")
def dry_run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of games to simulate.")] = 200,
    persona: Annotated[Persona, typer.Option(help="Persona that plays.")] = Persona.RANDOM,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> None:
    """Simulate a specification; show loss rate and reasons."""
    from peripety.cli.dry_run import dry_run  # noqa: PLC0415 - loads the engine

    dry_run(file, runs=runs, persona=persona.value, seed=seed, as_json=as_json)


@scenarios.command()
def balance(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    target: Annotated[
        str, typer.Option(metavar="LOW-HIGH", help="Target range of the loss rate in percent, such as 30-40.")
    ],
    persona: Annotated[Persona, typer.Option(help="Persona that plays.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None, typer.Option(min=1, help="Number of games that confirm the result. [default: 10,000]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON that includes the specification.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the specification to a file.")
    ] = None,
) -> None:
    """Tune numbers of a specification to a loss rate.

    Changes as few numbers as possible and no rules. Exit code 0 if it is balanced, 1 if the target is out of
    reach.
    """
    from peripety.cli import balance as command  # noqa: PLC0415 - loads the engine

    options = command.options(persona.value, seed, max_runs)
    raise typer.Exit(command.balance(file, command.target(target), options, as_json=as_json, out=out))


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
            min=64, max=9_604, help="Maximum runs of a persona. [default: enough for a margin of 1 point]"
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="Maximum turns of a run. [default: the scenario's horizon]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the certificate.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="CERT", help="Write the certificate to a file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Write a report with plots to a file.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(metavar="CERT", help="Recompute this certificate and compare.")
    ] = None,
) -> None:
    """Measure how fair a specification is.

    Exit code 0 if it is certified, 1 if it is rejected. With --check: 0 if the certificate matches FILE, 1 if
    something
    differs or the check is inconclusive.
    """
    from peripety.cli import certify as command  # noqa: PLC0415 - loads the engine

    if check is not None:
        if any(option is not None for option in (persona, seed, max_runs, horizon, out, html)):
            raise typer.BadParameter(
                "--check can only be combined with FILE and --json; the certificate holds its other options"
            )
        raise typer.Exit(command.check(check, file, as_json=as_json))
    options = command.options([chosen.value for chosen in persona or ()], seed, max_runs, horizon)
    raise typer.Exit(command.certify(file, options, as_json=as_json, out=out, html=html))


@scenarios.command()
def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ID", help="Specification or id of a stored scenario; use - for standard input."
        ),
    ],
    svg: Annotated[
        Path | None, typer.Option(metavar="DRAWING", help="Write the graph to a file, as SVG.")
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print only a Mermaid flowchart.")] = False,
    runs: Annotated[
        int,
        typer.Option(
            min=0, max=100_000, help="Number of games that measure how often each part is active; 0 for none."
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
    from peripety.cli import inspect as command  # noqa: PLC0415 - loads the engine
    from peripety.scenarios.model import DryRunOptions  # noqa: PLC0415 - loads the engine

    if mermaid and as_json:
        raise typer.BadParameter("--mermaid cannot be combined with --json; leave one out")
    played = DryRunOptions(persona.value, seed, runs) if runs else None
    command.inspect(source, server, played, drawing=svg, as_mermaid=mermaid, as_json=as_json)
