"""Generate, compile, amend.

`peripety amend`: change a stored scenario by a description of the change.

Scenario authoring calls: generate, compile and amend, with their events shown as they arrive.

`peripety compile`: validate, dry-run, repair and store a specification.

Repairs only adjust numbers, and only if the dry-run misses its budget.

`peripety generate`: write a specification from a description.

`peripety generate --random`: valid random specifications from a seed, as JSON Lines.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.cli.embedded_services import embedded_services, services_at
from peripety.cli.input_documents import read_specification
from peripety.cli.output import (
    make_budget,
    open_output,
    person_console,
    progress_bar,
    read_text_argument,
    require_writable,
    result_console,
    save_file,
    write_bytes,
    write_json,
)
from peripety.cli.players import prompt_line
from peripety.cli.proto_json import to_json
from peripety.cli.render.console import live_view
from peripety.errors import InternalError, SpecError
from peripety.rpc.status import finding_from_proto
from peripety.scenario.spec_generator.generator import generate_spec

if TYPE_CHECKING:
    from pathlib import Path

    import grpc.aio

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.cli.render.console import ConsoleView, GameView


async def write_specification(
    channel: grpc.aio.Channel,
    request: scenario_pb2.GenerateScenarioRequest,
    view: GameView,
) -> scenario_pb2.GenerateScenarioResponse.Completed:
    """Generate a specification and return the result. Sets the id of the request.

    Raises:
        SpecError: no draft passed the checks.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    request.request_id = str(uuid4())
    async for event in stub.GenerateScenario(request):
        view.generation(event)
        if event.HasField("completed"):
            return event.completed
        if event.HasField("rejected"):
            raise _rejection_error(
                "no valid specification could be written from this description; rephrase it",
                event.rejected.findings,
            )
    raise InternalError("the scenario service ended its stream without a result")


async def compile_scenario(
    channel: grpc.aio.Channel,
    *,
    spec: bytes,
    view: GameView,
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
    request: scenario_pb2.AmendScenarioRequest,
    view: ConsoleView,
) -> scenario_pb2.AmendScenarioResponse.Amended:
    """Change a stored scenario. Sets the id of the request.

    Raises:
        SpecError: the change is not possible.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    request.request_id = str(uuid4())
    async for event in stub.AmendScenario(request):
        view.amendment(event)
        if event.HasField("amended"):
            return event.amended
        if event.HasField("rejected"):
            raise _rejection_error("the scenario was not changed", event.rejected.findings)
    raise InternalError("the scenario service ended its stream without a result")


def _rejection_error(message: str, findings: scenario_pb2.Findings) -> SpecError:
    return SpecError(message, list(map(finding_from_proto, findings.findings)))


def amend_request(
    scenario_id: str,
    text: str,
    level: str,
    model: str,
    attempts: int,
    budget: common.Budget,
) -> pb.AmendScenarioRequest:
    """Return the request for a change, without its id.

    Args:
        scenario_id: the scenario.
        text: the change; - for standard input.
        level: the checks that the result must pass: DRY_RUN, CERTIFICATE, or UNSPECIFIED for those that the
            current version passed.
        model: the model, as `provider/model`; empty for the configured one.
        attempts: maximum number of model answers.
        budget: the budget of these answers.
    """
    return pb.AmendScenarioRequest(
        scenario_id=scenario_id,
        instruction=read_text_argument(text, "TEXT"),
        level=pb.ValidationLevel.Value(f"VALIDATION_LEVEL_{level}"),
        model=model,
        max_attempts=attempts,
        budget=budget,
    )


def amend_stored(request: pb.AmendScenarioRequest, server: str | None, *, as_json: bool) -> None:
    """Change a scenario; print the progress and the differences.

    Args:
        request: the change.
        server: `host:port` of a server; None runs the change in this process, on the configured database.
        as_json: True to print the new version and its differences as one line of JSON instead.

    Raises:
        SpecError: the change is not possible.
    """
    amended = asyncio.run(_amend(request, server, as_json=as_json))
    if as_json:
        write_json(to_json(amended))
    else:
        scenario = amended.scenario
        result_console().print(
            f"stored as {scenario.scenario_id}, version {scenario.spec_hash}",
            style="bold",
        )


async def _amend(
    request: pb.AmendScenarioRequest,
    server: str | None,
    *,
    as_json: bool,
) -> pb.AmendScenarioResponse.Amended:
    with live_view(person_console() if as_json else result_console()) as story:
        async with services_at(server, "gateway", "scenarios") as channel:
            return await amend_scenario(channel, request, story)


def compile_specification(source: str, *, version_of: str | None, server: str | None, as_json: bool) -> None:
    """Compile the specification in `source`; print its repairs and where it is stored.

    Args:
        source: a file, or - for standard input.
        version_of: the stored scenario to add a version to.
        server: `host:port` of a server; None compiles in this process, into the configured database.
        as_json: True to print the stored scenario as one line of JSON instead.

    Raises:
        SpecError: the specification is rejected.
    """
    asyncio.run(_compile(read_specification(source), version_of, server, as_json=as_json))


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


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """Options of a generation; 0 means no limit, or the limit of the server.

    Attributes:
        level: the checks to pass: SCHEMA, STATIC, DRY_RUN or CERTIFICATE.
        seed: the scenario's seed; None to derive it from the description.
        model: the model, as `provider/model`; empty for the configured one.
        attempts: maximum number of model answers.
        tokens: maximum tokens.
        dollars: maximum cost.
        seconds: maximum time.
        refresh: True to ignore a cached specification.
    """

    level: str
    seed: int | None = None
    model: str = ""
    attempts: int = 0
    tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    refresh: bool = False

    def to_request(self, description: str) -> scenario_pb2.GenerateScenarioRequest:
        """Return the request, without its id."""
        return scenario_pb2.GenerateScenarioRequest(
            description=description,
            seed=self.seed,
            model=self.model,
            max_attempts=self.attempts,
            budget=make_budget(tokens=self.tokens, dollars=self.dollars, seconds=self.seconds),
            level=scenario_pb2.ValidationLevel.Value(f"VALIDATION_LEVEL_{self.level}"),
            refresh=self.refresh,
        )


def generate_specification(
    description: str | None,
    settings: GenerationSettings,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    """Write a specification to a file or to standard output; print progress to standard error.

    On a terminal, the specification itself is only printed with `as_json`.

    Args:
        description: the description; None to prompt for it at a terminal.
        settings: the options.
        as_json: True to print the specification on a terminal and beside a file, too.
        out: the file.
    """
    require_writable(out)
    if description is None:
        description = (prompt_line("Describe the scenario > ") if sys.stdin.isatty() else None) or ""
    request = settings.to_request(read_text_argument(description, "--description"))
    is_piped = as_json or (out is None and not sys.stdout.isatty())
    with live_view(person_console() if is_piped else result_console()) as story:
        spec = asyncio.run(_generate(request, story))
    if out is not None:
        save_file(spec + b"\n", out)
    if is_piped:
        write_bytes(spec)


async def _generate(request: scenario_pb2.GenerateScenarioRequest, view: GameView) -> bytes:
    async with embedded_services("gateway", "scenarios") as channel:
        return (await write_specification(channel, request, view)).spec


def generate_random(count: int, *, seed: int, out: Path | None) -> None:
    """Write specifications as JSON Lines to a file or to standard output, each as soon as it is generated."""
    with open_output(out) as lines, progress_bar("generating", count) as advance:
        for index in range(count):
            lines.write(generate_spec(seed, index) + b"\n")
            advance(1)
