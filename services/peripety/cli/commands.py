"""The commands and their options."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from peripety.cli.agent_commands import agent
from peripety.cli.streams import discard_output, open_closed_streams
from peripety.errors import PeripetyError

__all__ = ["app", "main"]

DEBUG = "PERIPETY_DEBUG"
MAX_SEED = 2**53 - 1

app = typer.Typer(
    name="peripety",
    help="Free text in, a checked scenario out, turns that stream.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(agent)


class Service(Enum):
    """What `serve` can run in one process."""

    ALL = "all"
    GATEWAY = "gateway"
    SCENARIOS = "scenarios"
    SESSIONS = "sessions"


class Level(Enum):
    """How much of a specification is checked."""

    SCHEMA = "schema"
    STATIC = "static"
    DRY_RUN = "dry-run"
    CERTIFICATE = "certificate"


class Persona(Enum):
    """Who plays in a dry-run."""

    IDLE = "idle"
    RANDOM = "random"
    GREEDY = "greedy"
    CAUTIOUS = "cautious"
    PLANNER = "planner"
    SABOTEUR = "saboteur"


About = Annotated[
    str | None,
    typer.Option("--about", metavar="TEXT", help="What the scenario is about, in any language; - reads it."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=MAX_SEED, help="Makes chance repeatable. [default: the scenario's]"),
]


def main() -> None:
    """Run the command line; never returns."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows a substitute; it does not end the program.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        app()
    except PeripetyError as error:
        if os.environ.get(DEBUG):
            raise
        from peripety.cli.failure import explain  # noqa: PLC0415 - loads rich

        sys.exit(explain(error))
    except OSError as error:
        # What is read says so itself; what remains is output that finds no room.
        if os.environ.get(DEBUG):
            raise
        discard_output()
        sys.exit(f"error: cannot write the output: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        sys.exit(f"error: {type(error).__name__}: {error} ({DEBUG}=1 shows where)")


def _show_version(wanted: bool) -> None:
    if wanted:
        from peripety.cli.version import version  # noqa: PLC0415 - loads the engine

        typer.echo(version())
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and the core."
        ),
    ] = False,
) -> None:
    """Free text in, a checked scenario out, turns that stream."""


@app.command()
def play(
    about: About = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Stop after this many turns.")] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose the actions by a fixed rule instead of asking.")
    ] = False,
    seed: Seed = None,
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Whose point of view to take. [default: the only playable entity's, else the public one]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Turn a description into a scenario and play it: all services in this process, over real gRPC."""
    from peripety.cli.play import play  # noqa: PLC0415 - loads the services

    play(about=about, turns=turns, auto=auto, seed=seed, pov=pov, as_json=as_json)


@app.command()
def serve(
    service: Annotated[Service, typer.Argument(help="Which service to run.")] = Service.ALL,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")
    ] = None,
) -> None:
    """Serve all services in one process, or one of them."""
    from peripety.cli.serve import serve  # noqa: PLC0415 - loads the services

    serve(None if service is Service.ALL else service.value, listen)


@app.command()
def generate(
    about: About = None,
    seed: Seed = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the specification and nothing else.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the specification to a file.")
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Write so many valid ones at random instead, a line each; --seed is 0."
        ),
    ] = None,
) -> None:
    """Write the specification of a scenario from a description, or many at random."""
    if random is not None:
        if about is not None:
            raise typer.BadParameter("--random is about nothing: leave --about out, or --random")
        from peripety.cli.random_specs import generate_random  # noqa: PLC0415 - loads the engine

        generate_random(random, seed=seed or 0, out=out)
        return
    from peripety.cli.generate import generate  # noqa: PLC0415 - loads the services

    generate(about=about, seed=seed, as_json=as_json, out=out)


@app.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="JSON, JSON Lines, Parquet (columns spec and id), a folder of them; - reads standard input.",
        ),
    ],
    level: Annotated[Level, typer.Option(help="How much is checked.")] = Level.STATIC,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=256, help="Threads that share the work. [default: 2 a core]")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep verdicts there, and do not check again what has one."),
    ] = None,
    persona: Annotated[Persona, typer.Option(help="Who plays in the dry-run.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(min=64, max=100_000, help="Most runs of a persona. [default: what the verdict takes]"),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, max=1_000, help="Most turns of a run. [default: the scenario's]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each verdict as a line of JSON.")] = False,
) -> None:
    """Check specifications: exit code 0 when all are valid, 1 when one is not, 2 when one cannot be read.

    Verdicts come in any order, each with its file and line. What is the same is checked once.
    """
    from peripety.cli import validate as command  # noqa: PLC0415 - loads the engine

    options = command.options(level.name, persona.value, seed, max_runs, horizon)
    raise typer.Exit(command.validate(files, options, jobs=jobs, resume=resume, as_json=as_json))


@app.command("dry-run")
def dry_run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; - reads standard input.")],
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many games to simulate.")] = 200,
    persona: Annotated[Persona, typer.Option(help="Who plays.")] = Persona.RANDOM,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> None:
    """Simulate a specification and say how often it is lost, and why."""
    from peripety.cli.dry_run import dry_run  # noqa: PLC0415 - loads the engine

    dry_run(file, runs=runs, persona=persona.value, seed=seed, as_json=as_json)


@app.command()
def balance(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; - reads standard input.")],
    target: Annotated[
        str, typer.Option(metavar="LOW-HIGH", help="How often it should be lost, in percent, such as 30-40.")
    ],
    persona: Annotated[Persona, typer.Option(help="Who plays.")] = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None, typer.Option(min=1, help="Games that are played to confirm it. [default: 10,000]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON, with the specification in it.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the specification to a file.")
    ] = None,
) -> None:
    """Move the fewest numbers after which a specification is lost as often as wanted; rules stay as they are.

    Exit code 0 when it is balanced, 1 when the target is out of reach.
    """
    from peripety.cli import balance as command  # noqa: PLC0415 - loads the engine

    options = command.options(persona.value, seed, max_runs)
    raise typer.Exit(command.balance(file, command.target(target), options, as_json=as_json, out=out))


@app.command()
def certify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; - reads standard input.")],
    persona: Annotated[
        list[Persona] | None,
        typer.Option(help="Who plays besides random; may be repeated. [default: everybody]"),
    ] = None,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(min=64, max=9_604, help="Most runs of a persona. [default: what ± 1 point takes]"),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, max=1_000, help="Most turns of a run. [default: the scenario's]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate and nothing else.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="CERT", help="Write the certificate to a file.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Write a report with plots to a file.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(metavar="CERT", help="Compute this certificate again and compare.")
    ] = None,
) -> None:
    """Measure how fair a specification is: exit code 0 when it is certified, 1 when it is refused.

    With --check: 0 when the certificate is right about FILE, 1 when something differs or it cannot be told.
    """
    from peripety.cli import certify as command  # noqa: PLC0415 - loads the engine

    if check is not None:
        if any(option is not None for option in (persona, seed, max_runs, horizon, out, html)):
            raise typer.BadParameter(
                "--check goes with FILE and --json alone: the certificate has its options"
            )
        raise typer.Exit(command.check(check, file, as_json=as_json))
    options = command.options([chosen.value for chosen in persona or ()], seed, max_runs, horizon)
    raise typer.Exit(command.certify(file, options, as_json=as_json, out=out, html=html))


@app.command()
def chat(
    model: Annotated[
        str, typer.Option(metavar="NAME", help="provider/model, or a model; see `peripety models`.")
    ] = "",
    system: Annotated[str, typer.Option(metavar="TEXT", help="Instructions of a new conversation.")] = "",
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this conversation.")
    ] = None,
    max_output: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer.")] = None,
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show what the model thinks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Talk to a model and see what each turn used; without a terminal, each line of input is a message."""
    from peripety.cli.chat import ChatOptions, chat  # noqa: PLC0415 - loads the services

    raise typer.Exit(chat(ChatOptions(model, system, conversation, max_output, reasoning, as_json)))


@app.command()
def models(
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the models of this provider.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print each model as a line of JSON, prices in pico-dollars a token."),
    ] = False,
) -> None:
    """List the models that are known: limits, prices in dollars for a million tokens, and how they cache."""
    from peripety.cli.models import models  # noqa: PLC0415 - loads the models

    models(provider, as_json=as_json)


@app.command()
def usage(
    by: Annotated[
        str, typer.Option(metavar="LIST", help="A row for each of: provider, model, conversation, day.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
) -> None:
    """Show what was used of models: calls, tokens, money, and what caches saved."""
    from peripety.cli.usage import usage  # noqa: PLC0415 - loads the services

    usage(by, as_json=as_json)


@app.command()
def simulate(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The same as --scenario.")] = None,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the model says: TOML or JSON.")
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--prompt", metavar="PROMPT", help="Print the answer to this, and end; may be repeated."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Print what can never happen in the scenario, and end.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    watch: Annotated[
        bool, typer.Option("--watch", help="Read the scenario again when its file changes.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep sequences, caches, limits and bills there between processes."
        ),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append each call to this file as a line of JSON.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was answered as a scenario, without keys.")
    ] = None,
    proxy: Annotated[
        str | None, typer.Option(metavar="URL", help="Pass requests on to a provider, to record its answers.")
    ] = None,
    seed: Seed = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print answers and flaws as lines of JSON.")
    ] = False,
) -> None:
    """Serve a scripted LLM to the official SDKs of all providers, or print its answers.

    It prints `listening on http://127.0.0.1:PORT` and answers the paths of every provider there until SIGTERM
    or Ctrl-C; SIGHUP reads the scenario again. docs/simulator.md says what a scenario may hold.
    """
    from peripety.cli import simulate as command  # noqa: PLC0415 - loads the simulator

    source = scenario or file
    if proxy is not None:
        if record is None or source is not None:
            raise typer.BadParameter("--proxy goes with --record FILE, and without a scenario")
        if not proxy.startswith(("http://", "https://")):
            raise typer.BadParameter("--proxy takes a provider's base URL, such as https://api.openai.com")
        command.record(record, proxy, host=host, port=port)
        return
    if source is None or (scenario and file):
        raise typer.BadParameter("name one scenario: --scenario FILE")
    if check:
        raise typer.Exit(command.check(source, as_json=as_json))
    kept = command.Kept(seed, state, capture, record)
    if prompts:
        raise typer.Exit(command.answer(source, prompts, kept, as_json=as_json))
    command.simulate(source, kept, host=host, port=port, watch=watch)
