"""Anthropic request body of a Messages call: blocks, tools, schemas and `cache_control` markers.

Messages are lists of blocks with alternating roles. Schemas of answers and strict tools are converted to
the dialect of Anthropic's structured output.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import FieldViolation, Finding, Severity
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.history_compat import (
    instructions_to_user_text,
    parse_arguments,
    to_call_id,
    unwrap_state,
)
from peripety.gateway.providers.schema_dialect import (
    ConvertedSchema,
    SchemaDialect,
    adapt_call,
    convert_schema,
    is_any,
    is_hint_in_prefix,
)
from peripety.gateway.providers.wire_protocol import RequestBody
from peripety.gateway.request_checks import reject_unsupported, required_tool_violations, requires_tool_call
from peripety.gateway.types.message import (
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    ToolCall,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.response import CacheBlock, SchemaMethod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage, Part, Tool, ToolChoice
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import CacheBreakpoint, SchemaReport


_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def add_cache_control(
    breakpoints: Iterable[CacheBreakpoint],
    tools: Sequence[JsonBlock],
    system: Sequence[JsonBlock],
    messages: Sequence[Sequence[JsonBlock]],
) -> None:
    """Put a marker on the last block before each breakpoint that can carry one.

    A marker adds a key to an existing block; the content compared with the cache does not depend on markers.
    A breakpoint without a suitable block is dropped.
    """
    for breakpoint_ in breakpoints:
        match breakpoint_.block:
            case CacheBlock.TOOLS:
                blocks = tools
            case CacheBlock.SYSTEM:
                blocks = system
            case CacheBlock.MESSAGE:
                blocks = messages[breakpoint_.message_index]
        carriers = [block for block in blocks if block.get("type") not in _UNMARKABLE]
        if carriers:
            carriers[-1]["cache_control"] = {"type": "ephemeral", "ttl": breakpoint_.ttl.value}


_SUPPORTED_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
# Regular-expression features that it lacks: lookaround, backreferences, word boundaries.
_UNSUPPORTED_PATTERNS = re.compile(r"\(\?(?!:)|\\[1-9bB]")
_MAX_OPTIONAL_KEYS = 24
_MAX_UNIONS = 16


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


_STRUCTURED_OUTPUT = SchemaDialect(
    name="structured output",
    keywords={
        "type": is_any,
        "description": is_any,
        "const": _is_scalar,
        "enum": lambda values: all(map(_is_scalar, values)),
        "format": _SUPPORTED_FORMATS.__contains__,
        "minItems": (0, 1).__contains__,
        "pattern": lambda pattern: _UNSUPPORTED_PATTERNS.search(pattern) is None,
    },
    allows_optional_keys=True,
    object_root=False,
    allows_recursion=False,
    allows_overlapping_choices=True,
)


class AnthropicSchemas:
    """The schemas of one request, which share a limit on optional keys and unions."""

    def __init__(self) -> None:
        self._optional = _MAX_OPTIONAL_KEYS
        self._unions = _MAX_UNIONS

    def convert(self, document: Mapping[str, Any]) -> ConvertedSchema:
        """Convert a schema to the supported dialect; the result has no schema if that is impossible."""
        written = convert_schema(document, _STRUCTURED_OUTPUT)
        if written.schema is None:
            return written
        if written.optional > self._optional:
            return _limit_finding(f"there are more than {_MAX_OPTIONAL_KEYS} optional keys")
        if written.unions > self._unions:
            return _limit_finding(f"there are more than {_MAX_UNIONS} parts of several types")
        self._optional -= written.optional
        self._unions -= written.unions
        return written

    def convert_answer_schema(
        self,
        document: Mapping[str, Any],
    ) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
        """Return the converted schema of an answer, and findings about what is not enforced."""
        written = self.convert(document)
        return written.schema, written.dropped


def _limit_finding(problem: str) -> ConvertedSchema:
    return ConvertedSchema(
        None,
        (Finding("NOT_STRICT", "", f"structured output cannot be used: {problem}", Severity.WARNING),),
    )


_MAX_STRICT_TOOLS = 20
_CHOICE_TYPES = {
    ToolChoiceMode.AUTO: "auto",
    ToolChoiceMode.NONE: "none",
    ToolChoiceMode.ANY: "any",
    ToolChoiceMode.NAMED: "tool",
}


def tools_to_json(tools: Sequence[Tool], schemas: AnthropicSchemas) -> list[dict[str, Any]]:
    """Return the tools of a request; one whose schema cannot be enforced is not strict."""
    written = []
    strict = 0
    for tool in tools:
        schema = None
        if tool.strict and strict < _MAX_STRICT_TOOLS:
            schema = schemas.convert(tool.input_schema).schema
        strict += schema is not None
        written.append(
            {
                "name": to_wire_name(tool.name),
                **({"description": tool.description} if tool.description else {}),
                "input_schema": dict(tool.input_schema) if schema is None else schema,
                **({} if schema is None else {"strict": True}),
            },
        )
    return written


def tool_choice_to_json(request: GenerateRequest) -> dict[str, Any] | None:
    """Return the tool choice of a request; None for the default, where the model decides."""
    choice = request.tool_choice
    if choice is None or not request.tools:
        return None
    return {
        "type": _CHOICE_TYPES[choice.mode],
        **({"name": to_wire_name(choice.name)} if choice.name is not None else {}),
        **({"disable_parallel_tool_use": True} if _disable_parallel(choice) else {}),
    }


def _disable_parallel(choice: ToolChoice) -> bool:
    return choice.disable_parallel and choice.mode is not ToolChoiceMode.NONE


JsonBlock: TypeAlias = dict[str, Any]

_EMPTY_TEXT = "(no text)"
_MAX_ID_LENGTH = 64


class AnthropicMessages:
    """Converter of the messages of one call.

    Instructions between messages come last in their turn, in a separate message, if the model supports that:
    they must follow the user and precede the model. Otherwise they become user text.

    Args:
        call: the call. Its messages are merged, so that nothing separates calls from their results. Reasoning
            is sent back only to the model that issued it.
    """

    def __init__(self, call: ProviderCall) -> None:
        self.messages: list[dict[str, Any]] = []
        """The messages to send."""
        self.blocks: list[list[JsonBlock]] = []
        """The blocks of each message; the same objects as in the messages to send."""
        self._call = call
        for role, turn in groupby(call.request.messages, key=_role_of):
            blocks: dict[str, list[JsonBlock]] = {role: [], "system": []}
            said = list(turn)
            native = call.data.traits.system_messages and any(
                message.role is ChatRole.USER for message in said
            )
            for message in said:
                name = "system" if native and message.role is ChatRole.SYSTEM else role
                self.blocks.append(self._to_blocks(message, folded=name != message.role.value))
                blocks[name] += self.blocks[-1]
            self.messages += [
                {"role": name, "content": content} for name, content in blocks.items() if content
            ]

    def _to_blocks(self, message: ChatMessage, *, folded: bool) -> list[JsonBlock]:
        if folded:
            return [_text(instructions_to_user_text(message))]
        blocks = [block for part in message.parts for block in self._to_block(part)]
        # An empty message is invalid, but omitting it would break the alternation of roles.
        return blocks or [_text(_EMPTY_TEXT)]

    def _to_block(self, part: Part) -> Iterator[JsonBlock]:
        match part:
            case Text() if part.text.strip():
                yield _text(part.text)
            case ToolCall():
                name, arguments = to_wire_name(part.name), parse_arguments(part)
                yield {"type": "tool_use", "id": _id(part), "name": name, "input": arguments}
            case ToolResult():
                error = {"is_error": True} if part.is_error else {}
                yield {"type": "tool_result", "tool_use_id": _id(part), "content": part.text, **error}
            case ProviderState():
                if isinstance(thought := unwrap_state(self._call, part), dict):
                    yield thought
            case Text() | Reasoning():
                pass


def _role_of(message: ChatMessage) -> str:
    return "assistant" if message.role is ChatRole.ASSISTANT else "user"


def _text(text: str) -> JsonBlock:
    return {"type": "text", "text": text}


def _id(part: ToolCall | ToolResult) -> str:
    return to_call_id(part.call_id, _MAX_ID_LENGTH)


_MAX_TEMPERATURE = 1.0


def to_anthropic_body(call: ProviderCall) -> RequestBody:
    """Return the body of a streaming call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    reject_unsupported(call, _unsupported_options(call))
    request = call.request
    prompt, report = _prompt_fields(call)
    optional = {
        "temperature": request.temperature if call.data.traits.sampling else None,
        "stop_sequences": list(request.stop_sequences) or None,
    }
    document = {
        "model": call.model,
        "max_tokens": _max_tokens(call),
        "stream": True,
        **{name: value for name, value in optional.items() if value is not None},
        **prompt,
    }
    return RequestBody(document, report)


def to_counting_body(call: ProviderCall) -> Mapping[str, Any]:
    """Return the part of a call that the model reads, for token counting."""
    return {"model": call.model, **_prompt_fields(call)[0]}


def _unsupported_options(call: ProviderCall) -> Iterator[FieldViolation]:
    request, traits = call.request, call.data.traits
    if traits.sampling and request.temperature is not None and request.temperature > _MAX_TEMPERATURE:
        yield FieldViolation("temperature", f"must be from 0 to {_MAX_TEMPERATURE} for this model")
    if not all(stop.strip() for stop in request.stop_sequences):
        yield FieldViolation("stop_sequences", "must hold more than white space for this model")
    yield from required_tool_violations(call)


def _prompt_fields(call: ProviderCall) -> tuple[dict[str, Any], SchemaReport | None]:
    """Return the part of a body that determines the input tokens, and the schema report."""
    shapes = AnthropicSchemas()
    asked = adapt_call(call, lambda schema: shapes.convert_answer_schema(schema.document))
    request, report = asked.call.request, asked.report
    turns = AnthropicMessages(asked.call)
    blocks = list(turns.blocks)
    if report is not None and report.method is SchemaMethod.EXTRACTION and not is_hint_in_prefix(request):
        # The next call omits the text that describes the schema, so a cached prefix must end before it.
        blocks[-1] = blocks[-1][:-1]
    tools = tools_to_json(request.tools, shapes)
    system = [{"type": "text", "text": request.system}] if request.system and request.system.strip() else []
    add_cache_control(call.breakpoints, tools, system, blocks)
    optional = {
        "tools": tools,
        "system": system,
        "tool_choice": tool_choice_to_json(request),
        "thinking": _thinking(call, request),
        "output_config": _output_config(call, asked.native_schema),
    }
    given = {name: value for name, value in optional.items() if value}
    return {**given, "messages": turns.messages}, report


def _thinking(call: ProviderCall, request: GenerateRequest) -> dict[str, Any] | None:
    """Return the reasoning setting: off if a tool is required, because the two exclude each other.

    Else the default.
    """
    thinks = Capability.REASONING in call.data.capabilities and call.data.traits.reasoning_can_be_off
    return {"type": "disabled"} if thinks and requires_tool_call(request) else None


def _output_config(call: ProviderCall, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the effort of the reasoning and the schema of the answer, if they are set."""
    effort = call.data.effort_to_request(call.request)
    asked = {
        "effort": None if requires_tool_call(call.request) else effort,
        "format": schema and {"type": "json_schema", "schema": schema},
    }
    return {name: value for name, value in asked.items() if value}


def _max_tokens(call: ProviderCall) -> int:
    """Return the maximum of output tokens, a required field.

    A value above the model's maximum is rejected.
    """
    wanted = call.request.max_output_tokens or call.data.default_output_tokens
    return min(wanted, call.data.max_output_tokens or wanted)
