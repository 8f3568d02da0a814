"""Protobuf codec of messages, their parts and tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.requests import refuse

if TYPE_CHECKING:
    from peripety.gateway.model import Part

__all__ = [
    "call_to_proto",
    "choice_from_proto",
    "choice_to_proto",
    "json_object",
    "message_from_proto",
    "message_to_proto",
    "part_from_proto",
    "result_from_proto",
    "tool_from_proto",
    "tool_to_proto",
]

_ROLES = {
    pb.CHAT_ROLE_SYSTEM: ChatRole.SYSTEM,
    pb.CHAT_ROLE_USER: ChatRole.USER,
    pb.CHAT_ROLE_ASSISTANT: ChatRole.ASSISTANT,
}
_ROLES_ON_THE_WIRE = {role: value for value, role in _ROLES.items()}
_CHOICES = {
    pb.TOOL_CHOICE_MODE_UNSPECIFIED: ToolChoiceMode.AUTO,
    pb.TOOL_CHOICE_MODE_AUTO: ToolChoiceMode.AUTO,
    pb.TOOL_CHOICE_MODE_NONE: ToolChoiceMode.NONE,
    pb.TOOL_CHOICE_MODE_ANY: ToolChoiceMode.ANY,
    pb.TOOL_CHOICE_MODE_NAMED: ToolChoiceMode.NAMED,
}


def message_from_proto(field: str, message: pb.ChatMessage) -> ChatMessage:
    """Convert a message from protobuf.

    Args:
        field: path of the message in its request, for errors.
        message: the message.

    Raises:
        InvalidArgumentError: its role or a part is missing.
    """
    if message.role not in _ROLES:
        raise refuse(f"{field}.role", "must be CHAT_ROLE_USER, CHAT_ROLE_ASSISTANT or CHAT_ROLE_SYSTEM")
    parts = [part_from_proto(f"{field}.parts[{index}]", part) for index, part in enumerate(message.parts)]
    return ChatMessage(_ROLES[message.role], tuple(parts))


def part_from_proto(field: str, part: pb.ContentPart) -> Part:
    """Convert a part of a message from protobuf; raises the errors of `message_from_proto`."""
    match part.WhichOneof("part"):
        case "text":
            return Text(part.text)
        case "tool_call":
            call = part.tool_call
            json_object(f"{field}.tool_call.arguments", call.arguments)
            return ToolCall(call.call_id, call.name, call.arguments.decode())
        case "tool_result":
            return result_from_proto(part.tool_result)
        case "reasoning":
            return Reasoning(part.reasoning.text)
        case "provider_state":
            return ProviderState(part.provider_state.issuer, part.provider_state.data)
        case _:
            raise refuse(field, "must be a known kind")


def message_to_proto(message: ChatMessage) -> pb.ChatMessage:
    """Convert a message to protobuf."""
    return pb.ChatMessage(
        role=_ROLES_ON_THE_WIRE[message.role], parts=[_part_to_proto(part) for part in message.parts]
    )


def _part_to_proto(part: Part) -> pb.ContentPart:
    match part:
        case Text():
            return pb.ContentPart(text=part.text)
        case ToolCall():
            return pb.ContentPart(tool_call=call_to_proto(part))
        case ToolResult():
            result = pb.ToolResult(call_id=part.call_id, text=part.text, is_error=part.is_error)
            return pb.ContentPart(tool_result=result)
        case Reasoning():
            return pb.ContentPart(reasoning=pb.Reasoning(text=part.text))
        case ProviderState():
            return pb.ContentPart(provider_state=pb.ProviderState(issuer=part.issuer, data=part.data))


def call_to_proto(call: ToolCall) -> pb.ToolCall:
    """Convert a tool call to protobuf."""
    return pb.ToolCall(call_id=call.call_id, name=call.name, arguments=call.arguments.encode())


def result_from_proto(result: pb.ToolResult) -> ToolResult:
    """Convert a tool result from protobuf."""
    return ToolResult(result.call_id, result.text, result.is_error)


def tool_from_proto(field: str, tool: pb.Tool) -> Tool:
    """Convert a tool from protobuf; raises InvalidArgumentError if its schema is not a JSON object."""
    schema = json_object(f"{field}.input_schema", tool.input_schema)
    return Tool(tool.name, tool.description, schema, tool.strict)


def tool_to_proto(tool: Tool) -> pb.Tool:
    """Convert a tool to protobuf."""
    schema = json.dumps(dict(tool.input_schema)).encode()
    return pb.Tool(name=tool.name, description=tool.description, input_schema=schema, strict=tool.strict)


def choice_from_proto(field: str, choice: pb.ToolChoice) -> ToolChoice:
    """Convert a tool choice from protobuf.

    Raises InvalidArgumentError for a mode that is not in the contract.
    """
    if choice.mode not in _CHOICES:
        raise refuse(f"{field}.mode", "must be a known mode")
    return ToolChoice(_CHOICES[choice.mode], choice.name or None, choice.disable_parallel)


def choice_to_proto(choice: ToolChoice) -> pb.ToolChoice:
    """Convert a tool choice to protobuf."""
    return pb.ToolChoice(
        mode=pb.ToolChoiceMode.Value(f"TOOL_CHOICE_MODE_{choice.mode.name}"),
        name=choice.name or "",
        disable_parallel=choice.disable_parallel,
    )


def json_object(field: str, data: bytes) -> dict[str, Any]:
    """Parse a field that holds a JSON object.

    Raises:
        InvalidArgumentError: it does not.
    """
    try:
        document = jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise refuse(field, f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise refuse(field, "must be a JSON object")
    return document
