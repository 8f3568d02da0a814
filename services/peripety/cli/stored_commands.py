"""Commands and options of `peripety scenarios`."""

from __future__ import annotations

from typing import Annotated

import typer

from peripety.cli.options import Server  # noqa: TC001 - typer reads the annotations

__all__ = ["stored"]

stored = typer.Typer(name="scenarios", help="List, show and delete stored scenarios.", no_args_is_help=True)

ScenarioId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the scenario; see `peripety scenarios list`.")
]


@stored.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each entry as a line of JSON.")] = False,
) -> None:
    """List the latest versions of scenarios, newest first."""
    from peripety.cli.stored import list_scenarios  # noqa: PLC0415 - loads the services

    list_scenarios(count, server, as_json=as_json)


@stored.command()
def show(
    scenario_id: ScenarioId,
    version: Annotated[
        str | None, typer.Option(metavar="HASH", help="Version to show. [default: the latest]")
    ] = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the specification.")] = False,
) -> None:
    """Show a scenario: its rules, its dry-run, its versions."""
    from peripety.cli import stored as command  # noqa: PLC0415 - loads the services

    command.show(scenario_id, version, server, as_json=as_json)


@stored.command()
def delete(scenario_id: ScenarioId, server: Server = None) -> None:
    """Delete a scenario with all versions. Its sessions continue."""
    from peripety.cli import stored as command  # noqa: PLC0415 - loads the services

    command.delete(scenario_id, server)
