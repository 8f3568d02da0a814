"""Gemini request body of a `generateContent` call: contents, tools and thought signatures.

Gemini requires a thought signature back with the part that it came with. A signature is a `ProviderState`
directly before its part. A call's signature applies to the next call. A text's signature has the length of
its part, because neighbouring texts are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.history_compat import (
    instructions_to_user_text,
    parse_arguments,
    tool_names_by_call,
    unwrap_state,
    wrap_state,
)
from peripety.gateway.providers.schema_dialect import SchemaDialect, adapt_call, convert_schema, is_any
from peripety.gateway.providers.wire_protocol import RequestBody
from peripety.gateway.request_checks import (
    parallel_call_violations,
    reject_unsupported,
    required_tool_violations,
    stop_sequence_violations,
)
from peripety.gateway.types.message import (
    ChatRole,
    ProviderState,
    Text,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.errors import FieldViolation, Finding
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage, Tool
    from peripety.gateway.types.request import GenerateRequest, ResponseSchema


DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""Documented replacement for the signature of a call by another model."""


@dataclass(frozen=True, slots=True)
class ThoughtSignature:
    """A thought signature and the part that it covers.

    Attributes:
        value: opaque.
        characters: for a text, the number of following characters that it covers; None for a call.
    """

    value: str
    characters: int | None = None

    def to_state(self, call: ProviderCall) -> ProviderState:
        """Return the signature as stored in a conversation; `call` is the call that was answered."""
        return wrap_state(call, [self.value, self.characters])

    @classmethod
    def from_state(cls, state: ProviderState, call: ProviderCall) -> ThoughtSignature | None:
        """Return the signature of a stored state; None if another model than the call's issued it."""
        match unwrap_state(call, state):
            case [str(value), None]:
                return cls(value)
            case [str(value), int(characters)] if characters >= 0:
                return cls(value, characters)
        return None


_Json = dict[str, Any]


def to_contents(call: ProviderCall) -> list[_Json]:
    """Convert the turns; a turn without any supported part is omitted.

    Args:
        call: the call. Its messages are merged. Thought signatures are sent back only to the model that
            issued them. If the model requires signed calls, those of other models get the documented dummy
            signature.
    """
    messages = call.request.messages
    called = tool_names_by_call(messages)
    contents = [_content(message, called, call) for message in messages]
    return [content for content in contents if content["parts"]]


def _content(message: ChatMessage, called: Mapping[str, str], call: ProviderCall) -> _Json:
    role, parts = message.role, list[_Json]()
    match role:
        case ChatRole.SYSTEM:
            role, parts = ChatRole.USER, [{"text": instructions_to_user_text(message)}]
        case ChatRole.USER:
            parts = list(_assistant_parts(message, called))
        case ChatRole.ASSISTANT:
            parts = list(_user_parts(message, call))
            if call.data.traits.replays_reasoning:
                _add_dummy_signature(parts)
    return {"role": role.to_provider_string(call.data.provider), "parts": parts}


def _assistant_parts(message: ChatMessage, called: Mapping[str, str]) -> Iterator[_Json]:
    for part in message.parts:
        if isinstance(part, Text):
            yield {"text": part.text}
        elif isinstance(part, ToolResult):
            response = {"error" if part.is_error else "output": part.text}
            name = to_wire_name(called[part.call_id])
            yield {"functionResponse": {"id": part.call_id, "name": name, "response": response}}


def _user_parts(message: ChatMessage, call: ProviderCall) -> Iterator[_Json]:
    signature: ThoughtSignature | None = None
    for part in message.parts:
        match part:
            case ProviderState():
                signature = ThoughtSignature.from_state(part, call)
                if signature is not None and signature.characters == 0:
                    yield {"text": "", "thoughtSignature": signature.value}
            case Text():
                yield from _split_text(part.text, signature)
                signature = None
            case ToolCall():
                yield _to_call_part(part, signature)
                signature = None


def _split_text(text: str, signature: ThoughtSignature | None) -> Iterator[_Json]:
    """Yield a text, split at the end of the part that its signature covers."""
    if signature is not None and signature.characters:
        yield {"text": text[: signature.characters], "thoughtSignature": signature.value}
        text = text[signature.characters :]
    if text:
        yield {"text": text}


def _to_call_part(call: ToolCall, signature: ThoughtSignature | None) -> _Json:
    written = {"id": call.call_id, "name": to_wire_name(call.name), "args": parse_arguments(call)}
    if signature is None or signature.characters is not None:
        return {"functionCall": written}
    return {"functionCall": written, "thoughtSignature": signature.value}


def _add_dummy_signature(parts: Iterable[_Json]) -> None:
    """Sign the first call of a turn with the dummy; parallel calls need no signature."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", DUMMY_SIGNATURE)


_MAX_STOPS = 5
_MAX_SEED = 2**31 - 1


def _are_strings_and_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in values)


_KEYWORDS = frozenset({"type", "title", "description", "minItems", "maxItems", "minimum", "maximum"})
_JSON_SCHEMA = SchemaDialect(
    name="Gemini",
    keywords={
        **dict.fromkeys(_KEYWORDS, is_any),
        "format": frozenset({"date-time", "date", "time"}).__contains__,
        "enum": _are_strings_and_numbers,
    },
    allows_optional_keys=True,
    object_root=False,
    allows_recursion=True,
    allows_overlapping_choices=True,
    allows_any=True,
)


def to_gemini_body(call: ProviderCall) -> RequestBody:
    """Return the body of a call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    reject_unsupported(call, _unsupported_options(call))
    asked = adapt_call(call, _convert_schema)
    request = asked.call.request
    document = {
        "systemInstruction": {"parts": [{"text": request.system}]} if request.system else None,
        "contents": to_contents(asked.call),
        "tools": [{"functionDeclarations": [_to_function_declaration(each) for each in request.tools]}]
        if request.tools
        else None,
        "toolConfig": _tool_config(request),
        "generationConfig": _generation_config(call) | _format_fields(asked.native_schema) or None,
    }
    return RequestBody({name: value for name, value in document.items() if value is not None}, asked.report)


def _unsupported_options(call: ProviderCall) -> Iterator[FieldViolation]:
    yield from stop_sequence_violations(call.request, _MAX_STOPS)
    yield from parallel_call_violations(call.request)
    yield from required_tool_violations(call)


def _convert_schema(schema: ResponseSchema) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    written = convert_schema(schema.document, _JSON_SCHEMA)
    return written.schema, written.dropped


def _format_fields(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that enforce a schema."""
    return {} if schema is None else {"responseMimeType": "application/json", "responseJsonSchema": schema}


def _to_function_declaration(tool: Tool) -> dict[str, Any]:
    return {
        "name": to_wire_name(tool.name),
        "description": tool.description,
        "parametersJsonSchema": tool.input_schema,
    }


def _tool_config(request: GenerateRequest) -> dict[str, Any] | None:
    if not request.tools:
        return None
    choice = request.tool_choice or ToolChoice()
    config: dict[str, Any]
    match choice.mode:
        case ToolChoiceMode.NONE:
            config = {"mode": "NONE"}
        case ToolChoiceMode.ANY:
            config = {"mode": "ANY"}
        case ToolChoiceMode.NAMED:
            config = {"mode": "ANY", "allowedFunctionNames": [to_wire_name(choice.name or "")]}
        case ToolChoiceMode.AUTO:
            # Schemas are enforced for the arguments of all tools or of none.
            config = {"mode": "VALIDATED" if any(tool.strict for tool in request.tools) else "AUTO"}
    return {"functionCallingConfig": config}


def _generation_config(call: ProviderCall) -> dict[str, Any]:
    request = call.request
    options = {
        "maxOutputTokens": request.max_output_tokens,
        "temperature": request.temperature if call.data.traits.sampling else None,
        # The API accepts 31 bits; equal seeds map to equal values.
        "seed": None if request.seed is None else request.seed & _MAX_SEED,
        "stopSequences": list(request.stop_sequences) or None,
        "thinkingConfig": _thinking_config(call),
    }
    return {name: value for name, value in options.items() if value is not None}


def _thinking_config(call: ProviderCall) -> dict[str, Any] | None:
    if Capability.REASONING not in call.data.capabilities:
        return None
    effort = call.data.effort_to_request(call.request)
    return {"includeThoughts": True} | ({} if effort is None else {"thinkingLevel": effort.upper()})
