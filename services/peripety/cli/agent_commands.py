"""Commands and options of `peripety agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peripety.cli.options import Server  # noqa: TC001 - typer reads the annotations

__all__ = ["agent"]

agent = typer.Typer(
    name="agent", help="Run agents: phases that share one conversation with a model.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


@agent.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Agent file, in TOML.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--input",
            metavar="NAME=VALUE",
            help="Value for {{NAME}}; NAME=@FILE reads the value from a file.",
        ),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Continue this run instead of starting a new one.")
    ] = None,
    rerun_phase: Annotated[
        str | None,
        typer.Option(
            metavar="PHASE", help="With --resume: run this phase again, as FILE defines it now, in a new run."
        ),
    ] = None,
    following: Annotated[
        bool, typer.Option("--following", help="With --rerun-phase: also run the phases after it.")
    ] = False,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --rerun-phase: replace the instructions.")
    ] = None,
    input_template: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --rerun-phase: replace the input template.")
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Run an agent. Tools that have a command run on this machine.

    Shows the output and the usage of each phase.
    """
    from peripety.cli import agent_run  # noqa: PLC0415 - loads the services
    from peripety.cli.agent_file import read_agent  # noqa: PLC0415

    if rerun_phase is None and (following or system is not None or input_template is not None):
        raise typer.BadParameter("--following, --system and --input-template need --rerun-phase PHASE")
    if rerun_phase is not None and resume is None:
        raise typer.BadParameter("--rerun-phase needs --resume RUN, the run that contains the phase")
    described = read_agent(file)
    anew = None
    if rerun_phase is not None:
        phase = described.phase(rerun_phase)
        phase.system = phase.system if system is None else system
        phase.input_template = phase.input_template if input_template is None else input_template
        anew = agent_run.Anew(phase, following)
    given = dict(map(_input, inputs or ()))
    raise typer.Exit(
        agent_run.run(described, given, server=server, resumed=resume, anew=anew, as_json=as_json)
    )


@agent.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from peripety.cli.agent_run import list_runs  # noqa: PLC0415 - loads the services

    list_runs(server, count, as_json=as_json)


@agent.command()
def show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety agent list`.")],
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show the results of the phases of a run."""
    from peripety.cli.agent_run import show_run  # noqa: PLC0415 - loads the services

    show_run(run_id, server, as_json=as_json)


def _input(given: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not name or not separator:
        raise typer.BadParameter(f"--input must be NAME=VALUE: {given!r} lacks the name or the =")
    if not value.startswith("@"):
        return name, value
    try:
        return name, Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--input {name}: cannot read {value[1:]}: {error}") from None
