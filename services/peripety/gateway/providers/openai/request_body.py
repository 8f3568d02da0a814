"""OpenAI request body of a Chat Completions call: messages, tools and cache fields.

Tools are nested for Chat Completions and flat for the Responses API.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import CacheKind, Capability
from peripety.gateway.providers.history_compat import instructions_to_user_text, to_call_id
from peripety.gateway.providers.openai.dialect import to_strict_parameters, with_schema
from peripety.gateway.providers.wire_protocol import RequestBody
from peripety.gateway.request_checks import (
    parallel_call_violations,
    reject_unsupported,
    required_tool_violations,
    stop_sequence_violations,
)
from peripety.gateway.types.message import ChatRole, ProviderState, ToolChoiceMode, ToolResult
from peripety.gateway.types.response import CacheBlock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage, Tool, ToolCall
    from peripety.gateway.types.request import GenerateRequest


_log = logging.getLogger(__name__)

_CACHE_KEY_LENGTH = 32
# The default lifetime is used: the automatic breakpoint has it too.
_BREAKPOINT_FIELD = {"prompt_cache_breakpoint": {"mode": "explicit"}}


@dataclass(frozen=True, slots=True)
class CacheMarkers:
    """Breakpoints of a call, in the form written into a text part.

    Attributes:
        system: breakpoint after the system text.
        messages: breakpoints after messages, by index.
    """

    system: Mapping[str, Any]
    messages: Mapping[int, Mapping[str, Any]]


def cache_fields(call: ProviderCall) -> dict[str, Any]:
    """Return the request fields that control the cache as a whole.

    The key is equal for all requests of a conversation, so that they are routed to the machine with its
    cached prefix; without a conversation, it is equal for all requests with the same instructions and tools.
    """
    if call.request.cache.enabled and call.data.cache.kind is not CacheKind.NONE:
        return {"prompt_cache_key": _cache_key(call.request)}
    if call.data.cache.kind is CacheKind.AUTOMATIC_BREAKPOINTS:
        # Without a breakpoint, this mode reads nothing and writes nothing.
        return {"prompt_cache_options": {"mode": "explicit"}}
    return {}


def cache_markers(call: ProviderCall) -> CacheMarkers:
    """Return the breakpoints of a call, for models that support them.

    The last message needs none, because the provider sets one there automatically. Tools cannot carry one,
    and are covered by the one after the system text.
    """
    if call.data.cache.kind is not CacheKind.AUTOMATIC_BREAKPOINTS or not call.request.cache.enabled:
        return CacheMarkers({}, {})
    system: Mapping[str, Any] = {}
    messages: dict[int, Mapping[str, Any]] = {}
    for point in call.breakpoints:
        if point.block is CacheBlock.SYSTEM:
            system = _BREAKPOINT_FIELD
        elif point.block is CacheBlock.MESSAGE and point.message_index < len(call.request.messages) - 1:
            messages[point.message_index] = _BREAKPOINT_FIELD
    return CacheMarkers(system, messages)


def _cache_key(request: GenerateRequest) -> str:
    tools = [[tool.name, tool.description, dict(tool.input_schema)] for tool in request.tools]
    same = [request.conversation_id] if request.conversation_id else [request.system, tools]
    return sha256(json.dumps(same).encode()).hexdigest()[:_CACHE_KEY_LENGTH]


_Message = dict[str, Any]
_MAX_CALL_ID = 40


def to_messages(call: ProviderCall) -> list[_Message]:
    """Return the system text and the messages of a call, with breakpoints on their last texts."""
    marks = cache_markers(call)
    writing = _MessageConverter(call)
    written: list[_Message] = []
    if call.request.system is not None:
        written += writing.with_breakpoint([writing.to_instructions(call.request.system)], marks.system)
    for index, message in enumerate(call.request.messages):
        written += writing.with_breakpoint(writing.to_messages(message), marks.messages.get(index, {}))
    return written


class _MessageConverter:
    """Converter of the messages of one call."""

    def __init__(self, call: ProviderCall) -> None:
        self._issuer = call.data.provider
        self._traits = call.data.traits
        # A text with a breakpoint must be a part. All texts are then parts, so that prefixes never change.
        self._uses_parts = call.data.cache.kind is CacheKind.AUTOMATIC_BREAKPOINTS

    def to_instructions(self, text: str) -> _Message:
        """Return instructions in the model's role for them."""
        return {"role": self._traits.instructions_role, "content": self._content(text)}

    def to_messages(self, message: ChatMessage) -> list[_Message]:
        """Convert one message: each tool result becomes its own message, and an empty message is omitted."""
        match message.role:
            case ChatRole.SYSTEM if self._traits.system_messages:
                return [self.to_instructions(message.text)]
            case ChatRole.SYSTEM:
                return [{"role": "user", "content": self._content(instructions_to_user_text(message))}]
            case ChatRole.USER:
                return self._from_user(message)
            case ChatRole.ASSISTANT:
                return self._from_assistant(message)

    def with_breakpoint(self, messages: list[_Message], mark: Mapping[str, Any]) -> list[_Message]:
        """Return the messages with a breakpoint after the last text, if there is one."""
        if mark and messages and isinstance(messages[-1]["content"], list):
            messages[-1]["content"][-1] |= mark
        return messages

    def _from_user(self, message: ChatMessage) -> list[_Message]:
        written = [
            {
                "role": "tool",
                "tool_call_id": to_call_id(part.call_id, _MAX_CALL_ID),
                # The API has no field for a failed tool.
                "content": self._content(f"Error: {part.text}" if part.is_error else part.text),
            }
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        return (
            [*written, {"role": "user", "content": self._content(message.text)}] if message.text else written
        )

    def _from_assistant(self, message: ChatMessage) -> list[_Message]:
        calls = message.tool_calls
        if not calls and not message.text:
            return []
        # Templates of open models fail on a missing or null content.
        said: _Message = {"role": "assistant", "content": self._content(message.text)}
        if calls:
            said["tool_calls"] = [_to_call(call) for call in calls]
        if self._traits.replays_reasoning and (thoughts := self._reasoning_content(message)):
            said["reasoning_content"] = thoughts
        return [said]

    def _reasoning_content(self, message: ChatMessage) -> str:
        """Return the model's reasoning, if it has to be sent back."""
        states = [part for part in message.parts if isinstance(part, ProviderState)]
        own = "".join(state.data.decode() for state in states if state.issuer == self._issuer)
        if own or not message.tool_calls:
            return own
        # Calls without reasoning are rejected, and so is empty reasoning. The text differs between turns,
        # because a model that reads the same thought repeatedly starts to repeat it.
        return "Tools to call now: " + ", ".join(call.name for call in message.tool_calls)

    def _content(self, text: str) -> str | list[_Message]:
        return [{"type": "text", "text": text}] if text and self._uses_parts else text


def _to_call(call: ToolCall) -> _Message:
    return {
        "id": to_call_id(call.call_id, _MAX_CALL_ID),
        "type": "function",
        "function": {"name": to_wire_name(call.name), "arguments": call.arguments},
    }


_CHOICE_NAMES = {ToolChoiceMode.AUTO: "auto", ToolChoiceMode.NONE: "none", ToolChoiceMode.ANY: "required"}


def nested_tool_fields(call: ProviderCall) -> dict[str, Any]:
    """Return the tool fields of Chat Completions."""
    return _tool_fields(call, nested=True)


def flat_tool_fields(call: ProviderCall) -> dict[str, Any]:
    """Return the tool fields of the Responses API."""
    return _tool_fields(call, nested=False)


def _tool_fields(call: ProviderCall, *, nested: bool) -> dict[str, Any]:
    request, strict = call.request, call.data.traits.strict_schema
    if not request.tools:
        return {}
    told = [_wrap_function(_tool_definition(tool, strict=strict), nested=nested) for tool in request.tools]
    fields: dict[str, Any] = {"tools": told}
    choice = request.tool_choice
    if choice is None:
        return fields
    if choice.disable_parallel:
        fields["parallel_tool_calls"] = False
    if choice.mode is ToolChoiceMode.NAMED:
        named = {"name": to_wire_name(choice.name or "")}
        return {**fields, "tool_choice": _wrap_function(named, nested=nested)}
    return {**fields, "tool_choice": _CHOICE_NAMES[choice.mode]}


def _wrap_function(definition: dict[str, Any], *, nested: bool) -> dict[str, Any]:
    return {"type": "function", "function": definition} if nested else {"type": "function", **definition}


def _tool_definition(tool: Tool, *, strict: bool) -> dict[str, Any]:
    written = to_strict_parameters(tool.input_schema) if strict and tool.strict else None
    told = {
        "name": to_wire_name(tool.name),
        "description": tool.description,
        "parameters": dict(tool.input_schema) if written is None else written,
    }
    # The Responses API enforces the schema by default.
    return {**told, "strict": written is not None} if strict else told


def to_openai_body(call: ProviderCall, dialect: Dialect) -> RequestBody:
    """Return the body of a streaming call.

    Raises:
        InvalidArgumentError: the model does not support the request.
    """
    reject_unsupported(call, _unsupported_options(call.request, dialect))
    call, schema_fields, report = with_schema(call, dialect)
    return RequestBody(
        {
            "model": call.model,
            "messages": to_messages(call),
            "stream": True,
            "stream_options": {"include_usage": True},
            **_options(call),
            **nested_tool_fields(call),
            **_reasoning_fields(call, dialect),
            **schema_fields,
            **(cache_fields(call) if dialect.cache_controls else {}),
        },
        report,
    )


def _options(call: ProviderCall) -> dict[str, Any]:
    request, data = call.request, call.data
    options = {
        data.traits.length_field: request.max_output_tokens or data.output_tokens_to_request,
        "temperature": request.temperature if data.traits.sampling else None,
        "seed": request.seed if Capability.SEED in data.capabilities else None,
        "stop": list(request.stop_sequences) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _unsupported_options(request: GenerateRequest, dialect: Dialect) -> Iterator[FieldViolation]:
    """Yield options that the server does not support and that change the meaning if omitted."""
    yield from stop_sequence_violations(request, dialect.max_stops)
    if not dialect.can_disable_parallel:
        yield from parallel_call_violations(request)


def _reasoning_fields(call: ProviderCall, dialect: Dialect) -> dict[str, Any]:
    """Return the effort of the reasoning, or the fields that disable it for a model that rejects tools."""
    in_the_way = list(_conflicts_with_reasoning(call))
    if not in_the_way:
        effort = call.data.effort_to_request(call.request)
        return {} if effort is None else {"reasoning_effort": effort}
    reasons = Capability.REASONING in call.data.capabilities
    if not (reasons and call.data.traits.reasoning_can_be_off and dialect.disable_reasoning):
        reject_unsupported(call, in_the_way)
    model = f"{call.data.provider}/{call.model}"
    schema = call.request.schema
    use = "text" if schema is None else schema.name
    _log.warning("reasoning is off for a request with tools", extra={"model": model, "use": use})
    return dict(dialect.disable_reasoning)


def _conflicts_with_reasoning(call: ProviderCall) -> Iterator[FieldViolation]:
    request, traits = call.request, call.data.traits
    reasons = Capability.REASONING in call.data.capabilities
    if request.tools and reasons and not traits.tools_while_reasoning:
        reason = f"are not supported while it reasons; use openai-responses/{call.model}, or another model"
        yield FieldViolation("tools", reason)
    yield from required_tool_violations(call)
