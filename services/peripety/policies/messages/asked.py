"""Parsing of policy requests from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.gateway.messages.parts import json_object
from peripety.policies.model import Expectation, ScenarioSource, TestScenario, ToolRequest
from peripety.policies.sources import Brought, Stored
from peripety.requests import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.policies.sources import PolicySource

__all__ = ["MAX_SCENARIOS", "policy_source", "scenarios", "tool_request"]

MAX_SCENARIOS = 10_000

_MAX_TEXT_BYTES = 10_000
_EXPECTATIONS = {
    pb.Expectation.Value(f"EXPECTATION_{expectation.name}"): expectation for expectation in Expectation
}
_SOURCES = {
    pb.SCENARIO_SOURCE_UNSPECIFIED: ScenarioSource.HANDWRITTEN,
    **{pb.ScenarioSource.Value(f"SCENARIO_SOURCE_{source.name}"): source for source in ScenarioSource},
}


def policy_source(source: pb.PolicySource, field: str = ".policy") -> PolicySource:
    """Parse the source of a policy."""
    named = source.WhichOneof("source")
    require(named, field, "is required; send document, or the policy_id of a stored policy")
    return Brought(source.document) if named == "document" else Stored(source.policy_id)


def tool_request(request: pb.PolicyRequest, field: str = ".request") -> ToolRequest:
    """Parse a tool call."""
    require(request.server_name, f"{field}.server_name", "is required")
    require(request.tool_name, f"{field}.tool_name", "is required")
    arguments = json_object(f"{field}.arguments", request.arguments) if request.arguments else {}
    return ToolRequest(request.server_name, request.tool_name, arguments, tuple(request.roles))


def scenarios(messages: Sequence[pb.PolicyScenario], field: str = ".scenarios") -> tuple[TestScenario, ...]:
    """Parse a suite of scenarios with unique descriptions and ids."""
    require(len(messages) <= MAX_SCENARIOS, field, f"has more than {MAX_SCENARIOS} scenarios; send fewer")
    read = tuple(_scenario(message, f"{field}[{index}]") for index, message in enumerate(messages))
    _require_unique([one.description for one in read], field, "description")
    _require_unique([one.scenario_id for one in read], field, "scenario_id")
    return read


def _scenario(message: pb.PolicyScenario, field: str) -> TestScenario:
    require(message.description.strip(), f"{field}.description", "is required; describe the scenario")
    for name in ("description", "reasoning", "scenario_id", "rule_id"):
        size = len(getattr(message, name).encode())
        require(size <= _MAX_TEXT_BYTES, f"{field}.{name}", f"has more than {_MAX_TEXT_BYTES} bytes")
    expected = _EXPECTATIONS.get(message.expected)
    require(expected, f"{field}.expected", "is required; set the expected decision")
    require(message.source in _SOURCES, f"{field}.source", "is not a ScenarioSource")
    return TestScenario(
        description=message.description,
        request=tool_request(message.request, f"{field}.request"),
        expected_decision=_EXPECTATIONS[message.expected],
        reasoning=message.reasoning,
        source=_SOURCES[message.source],
        rule_id=message.rule_id,
        scenario_id=message.scenario_id,
    )


def _require_unique(names: Sequence[str], field: str, what: str) -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        before = first.setdefault(name, index) if name else index
        reason = f"equals that of {field}[{before}]; choose a unique one"
        require(before == index, f"{field}[{index}].{what}", reason)
