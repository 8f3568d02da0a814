"""`peripety generate`, `compile` and `amend`: write, store and change scenarios.

Events are shown as they arrive. `generate --random` writes valid random specifications from a seed, as JSON
Lines, without a model. `compile` adjusts numbers only if the dry-run misses the budget.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.cli.embedded_services import services_at
from peripety.cli.input_documents import read_specification
from peripety.cli.options import (
    Attempts,
    Description,
    Level,
    MaxCost,
    MaxTime,
    MaxTokens,
    Model,
    NewSeed,
    Server,
)
from peripety.cli.output import (
    SHOWS_EVERYTHING,
    deadline_of,
    error_console,
    make_budget,
    open_output,
    person_console,
    printable,
    progress_bar,
    read_text_argument,
    require_writable,
    result_console,
    save_file,
    write_bytes,
    write_json,
)
from peripety.cli.prompt import prompt_line
from peripety.cli.render.console import live_view
from peripety.cli.runs import Follow, RunFollower, resumed_amendment, resumed_generation
from peripety.errors import InternalError, SpecError
from peripety.rpc.proto_json import to_json
from peripety.rpc.status import finding_from_proto
from peripety.scenario.spec_generator.generator import generate_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    import grpc.aio

    from peripety.cli.render.console import ConsoleView, PreparationView
    from peripety.errors import Finding


commands = typer.Typer()


class DraftRejectedError(SpecError):
    """No draft passed the checks; `draft` is the best one, as JSON, and empty without one."""

    def __init__(self, message: str, findings: Sequence[Finding], draft: bytes) -> None:
        super().__init__(message, findings)
        self.draft = draft


async def write_specification(
    channel: grpc.aio.Channel,
    request: scenario_pb2.GenerateScenarioRequest | str,
    view: PreparationView,
    follower: RunFollower | None = None,
) -> scenario_pb2.GenerateScenarioResponse.Completed:
    """Generate a specification and return the result.

    Args:
        channel: the channel to the service.
        request: the request, which gets an id; or the id of the run to follow instead.
        view: shows the events.
        follower: follows the run; None if it is of no interest to the user.

    Raises:
        DraftRejectedError: no draft passed the checks.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    first: AsyncIterable[scenario_pb2.GenerateScenarioResponse]
    if isinstance(request, str):
        first = resumed_generation(channel, request, 0)
    else:
        request.request_id = str(uuid4())
        first = stub.GenerateScenario(request, timeout=deadline_of(request.budget))
    if follower is not None:
        first = follower.events(first, partial(resumed_generation, channel))
    async for event in first:
        view.generation(event)
        if event.HasField("completed"):
            return event.completed
        if event.HasField("rejected"):
            findings = list(map(finding_from_proto, event.rejected.findings.findings))
            message = "no valid specification could be written from this description; rephrase it"
            raise DraftRejectedError(message, findings, event.rejected.spec)
    raise InternalError("the scenario service ended its stream without a result")


async def compile_scenario(
    channel: grpc.aio.Channel,
    *,
    spec: bytes,
    view: PreparationView,
    version_of: str = "",
) -> scenario_pb2.CompiledScenario:
    """Validate, dry-run and store a specification, as a version of `version_of` if that is set.

    Raises:
        SpecError: the specification is rejected.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    request = scenario_pb2.CompileScenarioRequest(request_id=str(uuid4()), spec=spec, version_of=version_of)
    async for event in stub.CompileScenario(request):
        view.compilation(event)
        if event.HasField("compiled"):
            return event.compiled
        if event.HasField("rejected"):
            raise _rejection_error("the specification was rejected", event.rejected.findings)
    raise InternalError("the scenario service ended its stream without a result")


async def amend_scenario(
    channel: grpc.aio.Channel,
    request: scenario_pb2.AmendScenarioRequest | str,
    view: ConsoleView,
    follower: RunFollower,
) -> scenario_pb2.AmendScenarioResponse.Amended:
    """Change a stored scenario; see `write_specification` for the arguments.

    Raises:
        SpecError: the change is not possible.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    first: AsyncIterable[scenario_pb2.AmendScenarioResponse]
    if isinstance(request, str):
        first = resumed_amendment(channel, request, 0)
    else:
        request.request_id = str(uuid4())
        first = stub.AmendScenario(request, timeout=deadline_of(request.budget))
    async for event in follower.events(first, partial(resumed_amendment, channel)):
        view.amendment(event)
        if event.HasField("amended"):
            return event.amended
        if event.HasField("rejected"):
            raise _rejection_error("the scenario was not changed", event.rejected.findings)
    raise InternalError("the scenario service ended its stream without a result")


def _rejection_error(message: str, findings: scenario_pb2.Findings) -> SpecError:
    return SpecError(message, list(map(finding_from_proto, findings.findings)))


async def _amend(
    request: pb.AmendScenarioRequest | str,
    server: str | None,
    follower: RunFollower,
    *,
    as_json: bool,
) -> pb.AmendScenarioResponse.Amended:
    with live_view(person_console() if as_json else result_console()) as story:
        async with services_at(server, "gateway", "scenarios") as channel:
            return await amend_scenario(channel, request, story, follower)


async def _compile(spec: bytes, version_of: str | None, server: str | None, *, as_json: bool) -> None:
    with live_view(person_console() if as_json else result_console()) as story:
        async with services_at(server, "gateway", "scenarios") as channel:
            scenario = await compile_scenario(channel, spec=spec, view=story, version_of=version_of or "")
    if as_json:
        write_json(to_json(scenario))
    else:
        result_console().print(
            f"stored as {scenario.scenario_id}, version {scenario.spec_hash}",
            style="bold",
        )


async def _generate(
    request: scenario_pb2.GenerateScenarioRequest | str,
    view: PreparationView,
    server: str | None,
    follower: RunFollower,
) -> bytes:
    async with services_at(server, "gateway", "scenarios") as channel:
        return (await write_specification(channel, request, view, follower)).spec


def _offer_draft(draft: bytes, out: Path | None) -> None:
    """Write the best draft to a file, and print the ways to continue with it."""
    if not draft:
        return
    name = f"draft-{hashlib.sha256(draft).hexdigest()[:8]}.json"
    target = Path(name) if out is None else out.with_name(f"{out.stem}.draft{out.suffix or '.json'}")
    save_file(draft + b"\n", target)
    for line in (
        f"the best draft is in {printable(str(target))}",
        f"  edit it, and check it with `peripety validate --level certificate {printable(str(target))}`",
        "  or generate again: --attempts N allows more answers, --model NAME another model",
    ):
        error_console().print(line)


def _generate_random(count: int, *, seed: int, out: Path | None, with_story: bool) -> None:
    """Write specifications as JSON Lines to a file or to standard output, each as soon as it is generated."""
    with open_output(out) as lines, progress_bar("generating", count) as advance:
        for index in range(count):
            lines.write(generate_spec(seed, index, with_story=with_story) + b"\n")
            advance(1)


def _ask_description() -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter("give --description TEXT, or --description - for standard input")
    return prompt_line("Describe the scenario > ") or ""


@commands.command()
def generate(
    description: Description = None,
    seed: NewSeed = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="TAG",
            help="Language of names and texts, such as es or pt-BR. [default: that of the description]",
            show_default=False,
        ),
    ] = "",
    level: Annotated[
        Level,
        typer.Option(help="Checks that the specification must pass."),
    ] = Level.CERTIFICATE,
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
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the specification to a file. [default: standard output]",
        ),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Generate N valid random specifications instead, one per line.",
        ),
    ] = None,
    with_story: Annotated[
        bool,
        typer.Option(
            "--story", help="Random specifications of version 1.1, with places, clues and promises."
        ),
    ] = False,
    follow: Follow = None,
    server: Server = None,
) -> None:
    """Write a specification from a description.

    Writes to standard output or to a file; on a terminal, prints a summary instead. Exit code 0 if the
    specification passed its checks, 1 if no draft did: the findings give the reasons.

    The work is a run. After an interruption, the same command continues it, and does not pay again for the
    answers that it has received. --follow RUN continues a run by its id.
    """
    if random is not None:
        if description is not None or model or follow is not None:
            raise typer.BadParameter(
                "--random cannot be combined with --description, --model or --follow; leave them out",
            )
        _generate_random(random, seed=seed or 0, out=out, with_story=with_story)
        return
    if with_story:
        raise typer.BadParameter("--story requires --random; leave it out, or add --random N")
    if follow is not None and description is not None:
        raise typer.BadParameter("--follow RUN continues a run; leave out --description")
    require_writable(out)
    if description is None and follow is None:
        description = _ask_description()
    request = scenario_pb2.GenerateScenarioRequest(
        description=read_text_argument(description or "", "--description"),
        seed=seed,
        model=model,
        max_attempts=attempts,
        budget=make_budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0),
        level=scenario_pb2.ValidationLevel.Value(f"VALIDATION_LEVEL_{level.name}"),
        refresh=refresh,
        language=language,
    )
    is_piped = as_json or (out is None and not sys.stdout.isatty())
    follower = RunFollower("peripety generate --follow", server)
    try:
        with live_view(person_console() if is_piped else result_console()) as story:
            spec = follower.wait(_generate(request if follow is None else follow, story, server, follower))
    except DraftRejectedError as error:
        _offer_draft(error.draft, out)
        raise
    if out is not None:
        save_file(spec + b"\n", out)
    if is_piped:
        if sys.stdout.isatty():
            person_console().print(SHOWS_EVERYTHING)
        write_bytes(spec)


@commands.command("compile")
def compile_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    version_of: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Store the result as the latest version of this scenario. [default: a new scenario]",
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the stored scenario as one line of JSON."),
    ] = False,
) -> None:
    """Validate, dry-run and store a specification.

    If the scenario is only too easy or too hard, its numbers are adjusted first. Exit code 0 if it is stored,
    1 if it is rejected. `peripety scenarios list` shows what is stored.
    """
    asyncio.run(_compile(read_specification(file), version_of, server, as_json=as_json))


@commands.command()
def amend(
    scenario_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of the scenario; see `peripety scenarios list`."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[TEXT]", help="Requested change, in any language; use - for standard input."),
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(
            help="Checks that the result must pass. [default: those that the current version passed]",
        ),
    ] = None,
    model: Model = "",
    attempts: Attempts = 4,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    follow: Follow = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the new version and its differences as one line of JSON."),
    ] = False,
) -> None:
    """Change a stored scenario by a description.

    A model makes the change, or rules do if no model is configured. The result is a new version. Exit code
    0 if the scenario was changed, 1 if it was not. The work is a run; see `peripety generate`.
    """
    if (follow is None) == (scenario_id is None or text is None):
        raise typer.BadParameter("give ID and TEXT of a change, or only --follow RUN")
    request = pb.AmendScenarioRequest(
        scenario_id=scenario_id or "",
        instruction=read_text_argument(text or "", "TEXT"),
        level=pb.ValidationLevel.Value(f"VALIDATION_LEVEL_{level.name if level else 'UNSPECIFIED'}"),
        model=model,
        max_attempts=attempts,
        budget=make_budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0),
    )
    follower = RunFollower("peripety amend --follow", server)
    order = request if follow is None else follow
    amended = follower.wait(_amend(order, server, follower, as_json=as_json))
    if as_json:
        write_json(to_json(amended))
    else:
        scenario = amended.scenario
        result_console().print(
            f"stored as {scenario.scenario_id}, version {scenario.spec_hash}",
            style="bold",
        )
