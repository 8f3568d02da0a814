"""Scenario authoring calls: generate, compile and amend, with their events shown as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.client.findings import finding_from_proto
from peripety.errors import InternalError, SpecError

if TYPE_CHECKING:
    import grpc.aio

    from peripety.cli.story import Story
    from peripety.cli.view import View

__all__ = ["amend_scenario", "compile_scenario", "write_specification"]


async def write_specification(
    channel: grpc.aio.Channel, request: scenario_pb2.GenerateScenarioRequest, view: View
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
            raise _refusal(
                "no valid specification could be written from this description; rephrase it",
                event.rejected.findings,
            )
    raise InternalError("the scenario service ended its stream without a result")


async def compile_scenario(
    channel: grpc.aio.Channel, *, spec: bytes, view: View, version_of: str = ""
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
            raise _refusal("the specification was rejected", event.rejected.findings)
    raise InternalError("the scenario service ended its stream without a result")


async def amend_scenario(
    channel: grpc.aio.Channel, request: scenario_pb2.AmendScenarioRequest, story: Story
) -> scenario_pb2.AmendScenarioResponse.Amended:
    """Change a stored scenario. Sets the id of the request.

    Raises:
        SpecError: the change is not possible.
    """
    stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
    request.request_id = str(uuid4())
    async for event in stub.AmendScenario(request):
        story.amendment(event)
        if event.HasField("amended"):
            return event.amended
        if event.HasField("rejected"):
            raise _refusal("the scenario was not changed", event.rejected.findings)
    raise InternalError("the scenario service ended its stream without a result")


def _refusal(message: str, findings: scenario_pb2.Findings) -> SpecError:
    return SpecError(message, list(map(finding_from_proto, findings.findings)))
