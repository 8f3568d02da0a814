"""Compile orders from protobuf."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.errors import SpecError
from peripety.gateway.messages.parts import json_object
from peripety.gateway.messages.requests import budget_from_proto
from peripety.policies.messages import asked
from peripety.policies.model import CompileLimits, CompileOrder, ScenarioSource, ToolAnnotation
from peripety.requests import refuse, require
from peripety.sim import parse

if TYPE_CHECKING:
    from peripety.api.policy.v1 import policy_pb2 as pb

__all__ = ["MAX_CONSTITUTION_BYTES", "order"]

MAX_CONSTITUTION_BYTES = 256 * 1024

# Options that are limits: the field of `CompileLimits`, and the range of values.
_LIMITS = {
    "max_repairs": ("repairs", 0, 20),
    "max_probes": ("probes", 0, 50),
    "max_probe_rounds": ("probe_rounds", 0, 20),
    "tools_per_batch": ("tools_per_batch", 1, 100),
    "max_turns": ("turns", 1, 100),
}


def order(request: pb.CompilePolicyRequest) -> CompileOrder:
    """Parse a compile order.

    Raises:
        InvalidArgumentError: a field is missing or out of range.
    """
    _check_constitution(request.constitution)
    require(request.tools, ".tools", "is required; add the tools that the policy applies to")
    options = request.options
    foundation = _foundation(request.foundation)
    handwritten = asked.scenarios(request.handwritten_scenarios, ".handwritten_scenarios")
    return CompileOrder(
        constitution=request.constitution,
        tools=tuple(_tool(tool, f".tools[{index}]") for index, tool in enumerate(request.tools)),
        handwritten=tuple(replace(one, source=ScenarioSource.HANDWRITTEN) for one in handwritten),
        invariants=tuple(foundation.get("invariants", ())),
        lists=foundation.get("lists", {}),
        limits=_limits(request),
        replace_corrected=options.replace_corrected,
        directed=options.directed if options.HasField("directed") else True,
        mutation=options.mutation if options.HasField("mutation") else True,
        model=request.model or None,
    )


def _check_constitution(text: str) -> None:
    require(text.strip(), ".constitution", "is required; describe what is allowed and what is not")
    size = len(text.encode())
    reason = f"has {size} bytes; at most {MAX_CONSTITUTION_BYTES} are accepted, so shorten it"
    require(size <= MAX_CONSTITUTION_BYTES, ".constitution", reason)


def _tool(tool: pb.ToolAnnotation, field: str) -> ToolAnnotation:
    schema = json_object(f"{field}.input_schema", tool.input_schema) if tool.input_schema else None
    return ToolAnnotation(
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        description=tool.description,
        input_schema=schema,
        argument_roles=tuple((argument.path, argument.role) for argument in tool.argument_roles),
        read_only=tool.read_only,
        destructive=tool.destructive,
    )


def _limits(request: pb.CompilePolicyRequest) -> CompileLimits:
    asked_for: dict[str, Any] = {}
    for option, value in request.options.ListFields():
        if option.name in _LIMITS:
            name, least, most = _LIMITS[option.name]
            require(least <= value <= most, f".options.{option.name}", f"must be from {least} to {most}")
            asked_for[name] = value
    return CompileLimits(budget=budget_from_proto(".budget", request.budget), **asked_for)


def _foundation(data: bytes) -> dict[str, Any]:
    """Parse invariants and lists, with the strict JSON parser of policy documents."""
    if not data:
        return {}
    try:
        foundation = parse(data)
    except SpecError as error:
        raise refuse(".foundation", f"is not a JSON document: {error.findings[0].message}") from None
    known = isinstance(foundation, dict) and foundation.keys() <= {"invariants", "lists"}
    require(known, ".foundation", "must be a JSON object with only invariants and lists")
    read: dict[str, Any] = foundation
    kinds = isinstance(read.get("invariants", []), list) and isinstance(read.get("lists", {}), dict)
    require(kinds, ".foundation", "must contain an array of invariants and an object of lists")
    return read
