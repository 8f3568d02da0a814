"""Request body of OpenAI's Responses API: items, and the opaque state of reasoning and phases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.history_compat import to_call_id, unwrap_state, wrap_state
from peripety.gateway.providers.openai.dialect import OPENAI, with_schema
from peripety.gateway.providers.openai.request_body import cache_fields, cache_markers, flat_tool_fields
from peripety.gateway.providers.wire_protocol import RequestBody
from peripety.gateway.request_checks import reject_unsupported, required_tool_violations
from peripety.gateway.types.message import ChatRole, ProviderState, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage


_WRAPPED_FIELDS = ("type", "id", "summary", "content", "encrypted_content")


def wrap_reasoning(call: ProviderCall, item: Mapping[str, Any]) -> ProviderState | None:
    """Wrap a reasoning item.

    Returns:
        The state; None for an item without encrypted content, which cannot be sent back.
    """
    if not item.get("encrypted_content"):
        return None
    return wrap_state(call, {name: item[name] for name in _WRAPPED_FIELDS if item.get(name) is not None})


def wrap_phase(call: ProviderCall, item: Mapping[str, Any]) -> ProviderState | None:
    """Wrap the phase of the next text (commentary or answer); None if it is absent."""
    phase = item.get("phase")
    return wrap_state(call, {"type": "message", "phase": phase}) if isinstance(phase, str) else None


def unwrap_item(call: ProviderCall, state: ProviderState) -> dict[str, Any]:
    """Unwrap an item; empty if another provider or another model issued it."""
    item = unwrap_state(call, state)
    return item if isinstance(item, dict) else {}


_Item = dict[str, Any]
_MAX_CALL_ID = 64


def to_items(call: ProviderCall) -> list[_Item]:
    """Return the system text and the messages of a call, with breakpoints on their last texts."""
    marks, role = cache_markers(call), call.data.traits.instructions_role
    items: list[_Item] = []
    if call.request.system is not None:
        items += [_to_text_item(role, call.request.system, marks.system)]
    for index, message in enumerate(call.request.messages):
        mark = marks.messages.get(index, {})
        match message.role:
            case ChatRole.SYSTEM:
                items.append(_to_text_item(role, message.text, mark))
            case ChatRole.USER:
                items += _from_user(message, mark)
            case ChatRole.ASSISTANT:
                items += _from_assistant(message, call)
    return items


def _from_user(message: ChatMessage, mark: Mapping[str, Any]) -> Iterator[_Item]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            # The API has no field for a failed tool.
            output = f"Error: {part.text}" if part.is_error else part.text
            call_id = to_call_id(part.call_id, _MAX_CALL_ID)
            yield {"type": "function_call_output", "call_id": call_id, "output": output}
    if message.text:
        yield _to_text_item("user", message.text, mark)


def _from_assistant(message: ChatMessage, call: ProviderCall) -> list[_Item]:
    items: list[_Item] = []
    phase: _Item = {}
    for part in message.parts:
        match part:
            case Text() if part.text:
                items.append({"type": "message", "role": "assistant", "content": part.text, **phase})
                phase = {}
            case ToolCall():
                items.append(_to_call_item(part))
            case ProviderState():
                kept = unwrap_item(call, part)
                if kept.get("type") == "message":
                    phase = {"phase": kept.get("phase")}
                elif kept:
                    items.append(kept)
            case Text() | Reasoning() | ToolResult():
                pass
    # Reasoning must be followed by its result; an item without one is rejected.
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _to_call_item(call: ToolCall) -> _Item:
    return {
        "type": "function_call",
        "call_id": to_call_id(call.call_id, _MAX_CALL_ID),
        "name": to_wire_name(call.name),
        "arguments": call.arguments,
    }


def _to_text_item(role: str, text: str, mark: Mapping[str, Any]) -> _Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text, **mark}]}


_COUNTED_FIELDS = frozenset({"model", "input", "tools", "tool_choice", "parallel_tool_calls", "text"})


def to_responses_body(call: ProviderCall) -> RequestBody:
    """Return the body of a streaming call without storage on the server.

    Raises:
        InvalidArgumentError: the API does not support the request.
    """
    reject_unsupported(call, _unsupported_options(call))
    call, schema_fields, report = with_schema(call, OPENAI)
    return RequestBody(
        {
            "model": call.model,
            "input": to_items(call),
            "stream": True,
            "store": False,
            **_options(call),
            **flat_tool_fields(call),
            **_text_format(schema_fields),
            **cache_fields(call),
        },
        report,
    )


def to_counting_body(call: ProviderCall) -> dict[str, Any]:
    """Return the fields of a call that form its prompt."""
    document = to_responses_body(call).document
    return {name: value for name, value in document.items() if name in _COUNTED_FIELDS}


def _options(call: ProviderCall) -> dict[str, Any]:
    request, data = call.request, call.data
    effort = data.effort_to_request(request)
    options = {
        "max_output_tokens": request.max_output_tokens or data.output_tokens_to_request,
        "temperature": request.temperature if data.traits.sampling else None,
        # Without a copy on the server, the next turn has to include the reasoning.
        "reasoning": None if effort is None else {"effort": effort},
        "include": ["reasoning.encrypted_content"] if Capability.REASONING in data.capabilities else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _text_format(schema_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of an answer; Chat Completions nest it, this API does not."""
    if "response_format" not in schema_fields:
        return {}
    told = dict(schema_fields["response_format"])
    return {"text": {"format": told | told.pop("json_schema", {})}}


def _unsupported_options(call: ProviderCall) -> Iterator[FieldViolation]:
    if call.request.stop_sequences:
        reason = f"are not supported by the Responses API; remove them, or use openai/{call.model}"
        yield FieldViolation("stop_sequences", reason)
    yield from required_tool_violations(call)
