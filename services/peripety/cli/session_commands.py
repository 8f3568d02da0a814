"""`peripety sessions`: its commands and their options."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from peripety.cli.options import Server  # noqa: TC001 - typer reads the annotations

__all__ = ["sessions"]

sessions = typer.Typer(name="sessions", help="Look after the sessions that are stored.", no_args_is_help=True)

SessionId = Annotated[str, typer.Argument(metavar="ID", help="The session.")]


@sessions.command()
def export(
    session_id: SessionId,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the bundle there. [default: standard output]")
    ] = None,
    last_turn: Annotated[int, typer.Option(min=0, help="The last turn to export; 0 for all.")] = 0,
    server: Server = None,
) -> None:
    """Write a session down as a bundle, which `peripety replay` verifies and any server imports.

    The bundle holds everything, also what no player may see: hidden state, every point of view, memories.
    """
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    command.export(session_id, out, last_turn, server)


@sessions.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The bundle; - reads standard input.")],
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as a line of JSON.")] = False,
) -> None:
    """Verify a bundle, and store its session under a new id; of one that is not right nothing is stored."""
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    command.import_(file, server, as_json=as_json)


@sessions.command()
def replay(
    session_id: SessionId,
    first_turn: Annotated[int, typer.Option(min=0, help="The first turn to compare; 0 for the first.")] = 0,
    last_turn: Annotated[int, typer.Option(min=0, help="The last turn to compare; 0 for the last.")] = 0,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each turn as a line of JSON.")] = False,
) -> None:
    """Play a session again from its start: exit code 0 when every turn comes to what is recorded, else 1."""
    from peripety.cli import bundling as command  # noqa: PLC0415 - loads the services

    raise typer.Exit(command.replay(session_id, first_turn, last_turn, server, as_json=as_json))
