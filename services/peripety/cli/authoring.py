"""From a description to a stored scenario and its next version: calls whose events are shown as they come."""

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
    """Have a specification written; the request gets an id here.

    Raises:
        SpecError: no draft passed.
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
    """Have a specification checked, dry-run and stored, as a version of another scenario when one is named.

    Raises:
        SpecError: it cannot be accepted.
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
    """Have a stored scenario changed; the request gets an id here.

    Raises:
        SpecError: the change cannot be made.
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
