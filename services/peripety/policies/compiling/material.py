"""System texts of the authoring prompts: instructions, followed by the material as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.gateway.conversations import Conversation
from peripety.gateway.model import CacheConfig, Options
from peripety.policies.prompts import prompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.model import ModelGateway
    from peripety.policies.model import CompileOrder, TestScenario, ToolAnnotation

__all__ = ["as_text", "conversation_about", "material", "scenario_document", "system_text", "tool_document"]

OUTPUT_TOKENS = 8_192
"""Output token limit of a response; larger responses are split into smaller batches."""

_EXPECTED_TURNS = 3


def system_text(name: str, about: Mapping[str, Any]) -> str:
    """Return a system text: a prompt, with the material as a JSON object in its last line."""
    return f"{prompt(name)}\n{as_text(about)}"


def conversation_about(gateway: ModelGateway, system: str, model: str | None) -> Conversation:
    """Return a new conversation whose prefix a provider can cache.

    Args:
        gateway: the model gateway.
        system: its system text.
        model: as in `GenerateRequest.model`.
    """
    cache = CacheConfig(expected_reuse=_EXPECTED_TURNS)
    return Conversation(
        gateway, system, options=Options(model=model, max_output_tokens=OUTPUT_TOKENS, cache=cache)
    )


def material(order: CompileOrder, tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the material of prompts about some tools."""
    return {
        "constitution": order.constitution,
        "tools": [tool_document(tool) for tool in tools],
        "invariants": [*order.invariants],
        "lists": dict(order.lists),
    }


def tool_document(tool: ToolAnnotation) -> dict[str, Any]:
    """Return a tool as in a policy document, without unset members."""
    document: dict[str, Any] = {"server_name": tool.server_name, "tool_name": tool.tool_name}
    if tool.description:
        document["description"] = tool.description
    if tool.input_schema is not None:
        document["input_schema"] = tool.input_schema
    if tool.argument_roles:
        document["argument_roles"] = [{"path": path, "role": role} for path, role in tool.argument_roles]
    if tool.read_only:
        document["read_only"] = True
    if tool.destructive:
        document["destructive"] = True
    return document


def scenario_document(scenario: TestScenario) -> dict[str, Any]:
    """Return a scenario in the form that models read and write."""
    request = scenario.request
    return {
        "description": scenario.description,
        "request": {
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": dict(request.arguments),
            "roles": [*request.roles],
        },
        "expected_decision": scenario.expected_decision.value,
        "reasoning": scenario.reasoning,
    }


def as_text(value: Any) -> str:
    """Return JSON in one line, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
