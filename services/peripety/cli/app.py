"""The `peripety` command, version, standard streams.

The command line, `peripety`: one module per command.

Commands import what they need beyond this package when they run, so that help and usage errors appear at
once.
Results go to standard output, everything else to standard error.

Exit codes: 0 success; 1 the work failed or found a problem; 2 wrong usage; 130 interrupted by Ctrl-C.

The `peripety` command: its sub-commands and their options.

Robust standard streams: streams that are closed at start, or that cannot be written.

The text of `--version`.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from peripety import engine
from peripety.cli.agent import agent
from peripety.cli.options import MAX_SEED, Description, Seed
from peripety.cli.policy import policies
from peripety.cli.scenario import scenarios, stored
from peripety.cli.session import sessions
from peripety.cli.testgen import testgen
from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.version import __version__

__all__ = [
    "DEBUG_VARIABLE",
    "ServiceName",
    "app",
    "bench_narrator",
    "chat",
    "discard_output",
    "main",
    "models",
    "open_closed_streams",
    "play",
    "replay",
    "serve",
    "simulate",
    "usage",
    "version_text",
]


def open_closed_streams() -> None:
    """Connect each standard stream that was closed at the start (`>&-`) to the null device.

    Otherwise the next opened file, perhaps a database, would get its file descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


def discard_output() -> None:
    """Discard buffered standard output, because the interpreter would fail on it again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


DEBUG_VARIABLE = "PERIPETY_DEBUG"

app = typer.Typer(
    name="peripety",
    help="Turn free text into a validated scenario and play it, turn by turn.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(agent)
app.add_typer(scenarios)
app.add_typer(stored)
app.add_typer(sessions)
app.add_typer(policies)
app.add_typer(testgen)


class ServiceName(Enum):
    """Services that `serve` can run in one process."""

    ALL = "all"
    GATEWAY = "gateway"
    SCENARIOS = "scenarios"
    SESSIONS = "sessions"
    POLICIES = "policies"
    TESTGEN = "testgen"


def main() -> None:
    """Run the command line and exit the process."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Print a substitute for characters that the terminal cannot encode, instead of failing.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        app()
    except PeripetyError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        from peripety.cli.output import explain_error  # noqa: PLC0415 - loads rich

        sys.exit(explain_error(error))
    except UnicodeEncodeError as error:
        # Arguments that are not UTF-8 arrive as surrogates, which no protobuf message can hold.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        from peripety.cli.output import explain_error  # noqa: PLC0415 - loads rich

        told = f"argument is not UTF-8: {error.object[:80]!a}; encode it as UTF-8"
        sys.exit(explain_error(InvalidArgumentError(told, code="BAD_TEXT")))
    except OSError as error:
        # Input errors are reported where the input is read; an OSError that arrives at this point is an
        # output error.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        discard_output()
        sys.exit(f"error: cannot write the output: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        sys.exit(f"error: {type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows where)")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and the engine core.",
        ),
    ] = False,
) -> None:
    """Turn free text into a validated scenario and play it, turn by turn."""


@app.command()
def play(
    description: Description = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Stop after this number of turns.")] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Play automatically: choose the actions by a fixed rule."),
    ] = False,
    seed: Seed = None,
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Entity whose point of view is used. [default: the only playable entity, else public]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Turn a description into a scenario and play it.

    All services run in this process and communicate over gRPC.
    """
    from peripety.cli.play import play_game  # noqa: PLC0415 - loads the services

    play_game(description=description, turns=turns, auto=auto, seed=seed, pov=pov, as_json=as_json)


@app.command()
def serve(
    service: Annotated[ServiceName, typer.Argument(help="Service to run.")] = ServiceName.ALL,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 selects a free port."),
    ] = None,
) -> None:
    """Run all services in one process, or one of them."""
    from peripety.cli.embedded_services import serve_until_stopped  # noqa: PLC0415 - loads the services

    serve_until_stopped(None if service is ServiceName.ALL else service.value, listen)


@app.command()
def chat(
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Model to use: provider/model, or a model name; see `peripety models`.",
        ),
    ] = "",
    system: Annotated[str, typer.Option(metavar="TEXT", help="Instructions of a new conversation.")] = "",
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Continue this conversation."),
    ] = None,
    max_output: Annotated[int | None, typer.Option(min=1, help="Maximum output tokens of an answer.")] = None,
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show the reasoning of the model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Chat with a model and see the usage of each turn.

    Without a terminal, each line of standard input is a message.
    """
    from peripety.cli.gateway import ChatSettings, run_chat  # noqa: PLC0415 - loads the services

    raise typer.Exit(run_chat(ChatSettings(model, system, conversation, max_output, reasoning, as_json)))


@app.command()
def models(
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only the models of this provider."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print each model as a line of JSON; prices in pico-dollars per token."),
    ] = False,
) -> None:
    """List known models: limits, prices, cache rules.

    Prices are in dollars per million tokens.
    """
    from peripety.cli.gateway import print_models  # noqa: PLC0415 - loads the models

    print_models(provider, as_json=as_json)


@app.command()
def usage(
    by: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Group by any of provider, model, conversation, day, separated by commas.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
) -> None:
    """Show model usage: calls, tokens, cost, cache savings."""
    from peripety.cli.gateway import print_usage  # noqa: PLC0415 - loads the services

    print_usage(by, as_json=as_json)


@app.command()
def replay(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Session bundle; use - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
) -> None:
    """Replay a session from its bundle and verify it.

    Needs only the file, which `peripety sessions export` writes. Exit code 0 if every turn matches, 1 if a
    turn
    differs, 2 if the file cannot be read. A bundle contains the whole state, including what no player may
    see.
    """
    from peripety.cli import session_files as command  # noqa: PLC0415 - loads the engine

    raise typer.Exit(command.replay_bundle(file, as_json=as_json))


@app.command("bench-narrator")
def bench_narrator(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Specifications to play. [default: specifications generated offline]",
        ),
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, max=100_000, help="Number of games.")] = 10,
    turns: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum turns of a game.")] = 20,
    at_once: Annotated[
        int,
        typer.Option(min=1, max=128, help="Number of games played at the same time."),
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the games.")] = 1,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Narrator model: provider/model. [default: the configured model]"),
    ] = "",
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Entity whose point of view is used. [default: the only playable entity, else public]",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the measurements as one line of JSON."),
    ] = False,
) -> None:
    """Measure how well a model narrates.

    Plays random games, with actions and free text, and deletes them afterwards. Compares the narration with
    the
    engine: rules, secrets, cost and time. Exit code 1 if a turn was lost or a secret was revealed. See
    docs/how-to/compare-narrators.md for the measurements.
    """
    from peripety.cli.bench_narrator import BenchmarkPlan, run_benchmark  # noqa: PLC0415 - loads the services

    plan = BenchmarkPlan(tuple(files or ()), sessions, turns, at_once, seed, model, pov)
    raise typer.Exit(run_benchmark(plan, as_json=as_json))


@app.command()
def simulate(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The same as --script.")] = None,
    script: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Script of the simulated model: TOML or JSON."),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--prompt",
            metavar="PROMPT",
            help="Print the answer to this prompt and exit; may be repeated.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print unreachable rules and other flaws of the script, then exit."),
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free port."),
    ] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Reload the script when its file changes.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store turn sequences, caches, rate limits and bills in this file.",
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append each call to this file, as a line of JSON."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers to this file as a script, without credentials."),
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Forward requests to this provider and record its answers."),
    ] = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print answers or flaws as lines of JSON.")] = False,
) -> None:
    """Serve a scripted LLM, or print its answers.

    Prints `listening on http://127.0.0.1:PORT` and serves the API paths of every provider to the official
    SDKs until
    SIGTERM or Ctrl-C; SIGHUP reloads the script. See docs/reference/llmsim-script.md for the script format.
    """
    from peripety.cli import simulate as command  # noqa: PLC0415 - loads the simulator

    source = script or file
    if proxy is not None:
        if record is None or source is not None:
            raise typer.BadParameter("--proxy needs --record FILE and cannot be combined with a script")
        if not proxy.startswith(("http://", "https://")):
            raise typer.BadParameter(
                "--proxy must be the base URL of a provider, such as https://api.openai.com",
            )
        command.record_provider(record, proxy, host=host, port=port)
        return
    if source is None or (script and file):
        raise typer.BadParameter("name one script: --script FILE")
    if check:
        raise typer.Exit(command.print_flaws(source, as_json=as_json))
    kept = command.SimulatorSettings(seed, state, capture, record)
    if prompts:
        raise typer.Exit(command.answer_prompts(source, prompts, kept, as_json=as_json))
    command.serve_script(source, kept, host=host, port=port, watch=watch)


def version_text() -> str:
    """Return the version of the package and the active core."""
    return f"peripety {__version__} (core: {engine.BACKEND} {engine.BACKEND_VERSION})"
