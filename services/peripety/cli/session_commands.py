"""Commands and options of `peripety sessions`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from peripety.cli.options import MAX_SEED, Persona, Server

__all__ = ["sessions"]

sessions = typer.Typer(
    name="sessions", help="List, show, fork, rewind, watch and verify stored sessions.", no_args_is_help=True
)

SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session; see `peripety sessions list`.")
]
Pov = Annotated[
    str,
    typer.Option(
        "--as", metavar="ENTITY", help="Entity whose point of view is used. [default: the public view]"
    ),
]


@sessions.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    scenario: Annotated[str, typer.Option(metavar="ID", help="Only sessions of this scenario.")] = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each entry as a line of JSON.")] = False,
) -> None:
    """List sessions, newest first."""
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.list_sessions(count, scenario, server, as_json=as_json)


@sessions.command()
def show(
    session_id: SessionId,
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Show a session as one entity sees it.

    Prints its status, its state and a summary of its turns.
    """
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.show(session_id, pov, server, as_json=as_json)


@sessions.command()
def fork(
    session_id: SessionId,
    turn: Annotated[
        int | None, typer.Option(min=0, help="Turn after which the fork begins. [default: the last]")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX_SEED, help="Seed of the random numbers after that turn. [default: unchanged]"
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the fork as a line of JSON.")] = False,
) -> None:
    """Fork a session: the copy shares its first turns.

    Afterwards both sessions are independent.
    """
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.fork(session_id, turn, seed, server, as_json=as_json)


@sessions.command()
def rewind(
    session_id: SessionId,
    turn: Annotated[int, typer.Argument(min=0, help="Turn to rewind to; 0 is the start.")],
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Remove the last turns of a session.

    The turns cannot be restored: fork the session first to preserve them.
    """
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.rewind(session_id, turn, server, as_json=as_json)


@sessions.command()
def compare(
    session_id: SessionId,
    other_id: Annotated[str, typer.Argument(metavar="OTHER", help="Id of the session to compare with.")],
    pov: Pov = "",
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as one line of JSON.")
    ] = False,
) -> None:
    """Compare two sessions of a scenario.

    Shows the last common turn, the differences of their states, and the turns of each since then.
    """
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.compare(session_id, other_id, pov, server, as_json=as_json)


@sessions.command()
def delete(session_id: SessionId, server: Server = None) -> None:
    """Delete a session. Its forks remain."""
    from peripety.cli import branching as command  # noqa: PLC0415 - loads the services

    command.delete(session_id, server)


@sessions.command()
def odds(
    session_id: SessionId,
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Number of futures to simulate.")] = 1_000,
    horizon: Annotated[
        int,
        typer.Option(min=0, max=1_000, help="Turns of a future; 0 for the rest of the horizon."),
    ] = 0,
    persona: Annotated[Persona, typer.Option(help="Persona that plays the futures.")] = Persona.RANDOM,
    do: Annotated[
        list[str] | None,
        typer.Option(metavar="ACTION", help="First action, without parameters; may be repeated."),
    ] = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the odds as one line of JSON.")] = False,
) -> None:
    """Forecast the outcomes of a session.

    Simulates thousands of futures from the current turn and prints the probability of each loss and win. The
    futures
    use the whole state, including what no player may see.
    """
    from peripety.cli import following as command  # noqa: PLC0415 - loads the services

    request = command.futures(session_id, persona.value, runs, horizon)
    command.odds(request, do or [], server, as_json=as_json)


@sessions.command()
def watch(
    session_id: SessionId,
    pov: Pov = "",
    after: Annotated[int, typer.Option(min=0, help="Show only events after this sequence number.")] = 0,
    delay: Annotated[int, typer.Option(min=0, help="Number of turns by which to delay the events.")] = 0,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Follow a session as one entity sees it.

    Starts at the first event and ends with the session.
    """
    from peripety.cli import following as command  # noqa: PLC0415 - loads the services

    command.watch(command.followed(session_id, pov, after, delay), server, as_json=as_json)


@sessions.command()
def export(
    session_id: SessionId,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the bundle to this file. [default: standard output]"
        ),
    ] = None,
    last_turn: Annotated[int, typer.Option(min=0, help="Last turn to export; 0 for all turns.")] = 0,
    server: Server = None,
) -> None:
    """Export a session as a bundle.

    `peripety replay` verifies the bundle, and any server imports it. It contains the whole state, including
    what no
    player may see: hidden state, every point of view, memories.
    """
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    command.export(session_id, out, last_turn, server)


@sessions.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Session bundle; use - for standard input.")],
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Verify a bundle and store its session.

    The session gets a new id. A bundle that fails the verification is not stored.
    """
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    command.import_(file, server, as_json=as_json)


@sessions.command()
def replay(
    session_id: SessionId,
    first_turn: Annotated[
        int, typer.Option(min=0, help="First turn to compare; 0 for the first turn of the session.")
    ] = 0,
    last_turn: Annotated[
        int, typer.Option(min=0, help="Last turn to compare; 0 for the last turn of the session.")
    ] = 0,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each turn as a line of JSON.")] = False,
) -> None:
    """Replay a stored session and verify every turn.

    Exit code 0 if every turn matches the record, 1 otherwise.
    """
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    raise typer.Exit(command.replay(session_id, first_turn, last_turn, server, as_json=as_json))
