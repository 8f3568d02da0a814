"""Requests of PolicyService from protobuf; decisions of batches to protobuf."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.core.validation import check_item_id, require_unique
from peripety.engine import parse
from peripety.engine.policies.types import ToolRequest
from peripety.errors import PeripetyError, SpecError, field_error, require_field
from peripety.gateway.pb.requests import budget_from_proto, parse_json_object
from peripety.policy.decisions import InlinePolicy, StoredPolicyRef
from peripety.policy.pb import responses as pb_responses
from peripety.policy.types import (
    AnnotatedTool,
    CompileLimits,
    CompileOrder,
    Expectation,
    ScenarioOrigin,
    TestScenario,
)
from peripety.rpc.messages import members_by_number
from peripety.rpc.status import batch_items, item_error_to_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.policy.decisions import DecisionOutcome, PolicySource


MAX_SCENARIOS = 10_000

_MAX_TEXT_BYTES = 10_000
EXPECTATIONS = members_by_number(pb.Expectation, Expectation)
"""The expectations, by their number in a message."""
_SCENARIO_SOURCES = members_by_number(pb.ScenarioSource, ScenarioOrigin, ScenarioOrigin.HANDWRITTEN)


def policy_source_from_proto(source: pb.PolicySource, field: str = ".policy") -> PolicySource:
    """Parse the source of a policy."""
    named = source.WhichOneof("source")
    require_field(named, field, "is required; send document, or the policy_id of a stored policy")
    if named == "policy_id":
        return StoredPolicyRef(source.policy_id, source.policy_hash or None)
    reason = "is the version of a stored policy; remove it, or send policy_id in place of document"
    require_field(not source.policy_hash, f"{field}.policy_hash", reason)
    return InlinePolicy(source.document)


def tool_request_from_proto(request: pb.PolicyRequest, field: str = ".request") -> ToolRequest:
    """Parse a tool call."""
    require_field(request.server_name, f"{field}.server_name", "is required")
    require_field(request.tool_name, f"{field}.tool_name", "is required")
    arguments = parse_json_object(f"{field}.arguments", request.arguments) if request.arguments else {}
    return ToolRequest(request.server_name, request.tool_name, arguments, tuple(request.roles))


def scenarios_from_proto(
    messages: Sequence[pb.PolicyScenario],
    field: str = ".scenarios",
) -> tuple[TestScenario, ...]:
    """Parse a suite of scenarios with unique descriptions and ids."""
    require_field(
        len(messages) <= MAX_SCENARIOS,
        field,
        f"has more than {MAX_SCENARIOS} scenarios; send fewer",
    )
    read = tuple(_scenario_from_proto(message, f"{field}[{index}]") for index, message in enumerate(messages))
    require_unique([one.description for one in read], field, "description")
    require_unique([one.scenario_id for one in read], field, "scenario_id")
    return read


def _scenario_from_proto(message: pb.PolicyScenario, field: str) -> TestScenario:
    require_field(message.description.strip(), f"{field}.description", "is required; describe the scenario")
    for name in ("description", "reasoning", "scenario_id", "rule_id"):
        size = len(getattr(message, name).encode())
        require_field(size <= _MAX_TEXT_BYTES, f"{field}.{name}", f"has more than {_MAX_TEXT_BYTES} bytes")
    expected = EXPECTATIONS.get(message.expected)
    require_field(expected, f"{field}.expected", "is required; set the expected decision")
    require_field(message.source in _SCENARIO_SOURCES, f"{field}.source", "is not a ScenarioSource")
    return TestScenario(
        description=message.description,
        request=tool_request_from_proto(message.request, f"{field}.request"),
        expected_decision=EXPECTATIONS[message.expected],
        reasoning=message.reasoning,
        source=_SCENARIO_SOURCES[message.source],
        rule_id=message.rule_id,
        scenario_id=message.scenario_id,
    )


_MAX_ITEMS = 1_000


def items_from_proto(request: pb.DecideManyRequest) -> list[tuple[str, ToolRequest | PeripetyError]]:
    """Parse the requests of a message; an invalid request becomes an error in its place."""
    require_field(len(request.items) <= _MAX_ITEMS, ".items", f"has more than {_MAX_ITEMS} items; send fewer")
    return [(item.item_id, _request_from_proto(item)) for item in request.items]


def _request_from_proto(item: pb.DecideItem) -> ToolRequest | PeripetyError:
    try:
        check_item_id(item.item_id)
        return tool_request_from_proto(item.request)
    except PeripetyError as error:
        return error


def decisions_to_proto(decided: Iterable[tuple[str, DecisionOutcome]]) -> Iterator[pb.DecideManyResponse]:
    """Yield decisions in as few messages as the size limit allows, without sequence numbers."""
    for some in batch_items(_outcome_to_proto(item_id, outcome) for item_id, outcome in decided):
        yield pb.DecideManyResponse(outcomes=some)


def _outcome_to_proto(item_id: str, outcome: DecisionOutcome) -> pb.DecideOutcome:
    if isinstance(outcome, PeripetyError):
        return pb.DecideOutcome(item_id=item_id, error=item_error_to_proto(outcome))
    return pb.DecideOutcome(item_id=item_id, result=pb_responses.decision_to_proto(outcome))


MAX_CONSTITUTION_BYTES = 256 * 1024

# Options that are limits: the field of `CompileLimits`, and the range of values.
_OPTION_LIMITS = {
    "max_repairs": ("repairs", 0, 20),
    "max_probes": ("probes", 0, 50),
    "max_probe_rounds": ("probe_rounds", 0, 20),
    "tools_per_batch": ("tools_per_batch", 1, 100),
    "max_turns": ("turns", 1, 100),
}


def order_from_proto(request: pb.CompilePolicyRequest) -> CompileOrder:
    """Parse a compile order.

    Raises:
        InvalidArgumentError: a field is missing or out of range.
    """
    _check_constitution(request.constitution)
    require_field(request.tools, ".tools", "is required; add the tools that the policy applies to")
    options = request.options
    foundation = _parse_foundation(request.foundation)
    handwritten = scenarios_from_proto(request.handwritten_scenarios, ".handwritten_scenarios")
    return CompileOrder(
        constitution=request.constitution,
        tools=tuple(_tool_from_proto(tool, f".tools[{index}]") for index, tool in enumerate(request.tools)),
        handwritten=tuple(replace(one, source=ScenarioOrigin.HANDWRITTEN) for one in handwritten),
        invariants=tuple(foundation.get("invariants", ())),
        lists=foundation.get("lists", {}),
        context=foundation.get("context", {}),
        limits=_limits_from_proto(request),
        replace_corrected=options.replace_corrected,
        directed=options.directed if options.HasField("directed") else True,
        mutation=options.mutation if options.HasField("mutation") else True,
        model=request.model or None,
        allow_partial=options.allow_partial,
    )


def _check_constitution(text: str) -> None:
    require_field(text.strip(), ".constitution", "is required; describe what is allowed and what is not")
    size = len(text.encode())
    reason = f"has {size} bytes; at most {MAX_CONSTITUTION_BYTES} are accepted, so shorten it"
    require_field(size <= MAX_CONSTITUTION_BYTES, ".constitution", reason)


def _tool_from_proto(tool: pb.ToolAnnotation, field: str) -> AnnotatedTool:
    schema = parse_json_object(f"{field}.input_schema", tool.input_schema) if tool.input_schema else None
    return AnnotatedTool(
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        description=tool.description,
        input_schema=schema,
        argument_roles=tuple((argument.path, argument.role) for argument in tool.argument_roles),
        read_only=tool.read_only,
        destructive=tool.destructive,
    )


def _limits_from_proto(request: pb.CompilePolicyRequest) -> CompileLimits:
    asked_for: dict[str, Any] = {}
    for option, value in request.options.ListFields():
        if option.name in _OPTION_LIMITS:
            name, least, most = _OPTION_LIMITS[option.name]
            require_field(
                least <= value <= most,
                f".options.{option.name}",
                f"must be from {least} to {most}",
            )
            asked_for[name] = value
    return CompileLimits(budget=budget_from_proto(".budget", request.budget), **asked_for)


def _parse_foundation(data: bytes) -> dict[str, Any]:
    """Parse invariants and lists, with the strict JSON parser of policy documents."""
    if not data:
        return {}
    try:
        foundation = parse(data)
    except SpecError as error:
        raise field_error(".foundation", f"is not a JSON document: {error.findings[0].message}") from None
    known = isinstance(foundation, dict) and foundation.keys() <= {"invariants", "lists", "context"}
    require_field(known, ".foundation", "must be a JSON object with only invariants, lists and context")
    read: dict[str, Any] = foundation
    kinds = isinstance(read.get("invariants", []), list) and all(
        isinstance(read.get(name, {}), dict) for name in ("lists", "context")
    )
    require_field(
        kinds, ".foundation", "must contain an array of invariants, an object of lists and one of context"
    )
    return read
