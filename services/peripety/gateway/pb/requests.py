"""Prompts, tools and options to and from protobuf."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import jiter

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.core.validation import check_request_id
from peripety.errors import field_error
from peripety.gateway.types.message import (
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
from peripety.gateway.types.request import (
    Budget,
    CacheConfig,
    CacheTTL,
    GenerateRequest,
    GenerationOptions,
    ReasoningEffort,
    ResponseCacheMode,
    ResponseSchema,
)
from peripety.rpc.messages import copy_fields, members_by_number

if TYPE_CHECKING:
    from typing import TypeAlias

    from peripety.gateway.types.message import Part

    Asking: TypeAlias = (
        pb.GenerateRequest | pb.GenerateObjectRequest | pb.GenerateItem | pb.CountTokensRequest
    )


_ROLES = members_by_number(pb.ChatRole, ChatRole)
_TOOL_CHOICE_MODES = members_by_number(pb.ToolChoiceMode, ToolChoiceMode, ToolChoiceMode.AUTO)
_RESPONSE_CACHE_MODES = members_by_number(pb.ResponseCacheMode, ResponseCacheMode)
_REASONING_EFFORTS = members_by_number(pb.ReasoningEffort, ReasoningEffort)
_CACHE_TTLS = members_by_number(pb.CacheTtl, CacheTTL, CacheTTL.FIVE_MINUTES)


def message_from_proto(field: str, message: pb.ChatMessage) -> ChatMessage:
    """Convert a message from protobuf.

    Args:
        field: path of the message in its request, for errors.
        message: the message.

    Raises:
        InvalidArgumentError: its role or a part is missing.
    """
    if message.role not in _ROLES:
        raise field_error(f"{field}.role", "must be CHAT_ROLE_USER, CHAT_ROLE_ASSISTANT or CHAT_ROLE_SYSTEM")
    parts = [part_from_proto(f"{field}.parts[{index}]", part) for index, part in enumerate(message.parts)]
    return ChatMessage(_ROLES[message.role], tuple(parts))


def part_from_proto(field: str, part: pb.ContentPart) -> Part:
    """Convert a part of a message from protobuf; raises the errors of `message_from_proto`."""
    match part.WhichOneof("part"):
        case "text":
            return Text(part.text)
        case "tool_call":
            call = part.tool_call
            parse_json_object(f"{field}.tool_call.arguments", call.arguments)
            return ToolCall(call.call_id, call.name, call.arguments.decode())
        case "tool_result":
            return result_from_proto(part.tool_result)
        case "reasoning":
            return Reasoning(part.reasoning.text)
        case "provider_state":
            return ProviderState(part.provider_state.issuer, part.provider_state.data)
        case _:
            raise field_error(field, "must be a known kind")


def message_to_proto(message: ChatMessage) -> pb.ChatMessage:
    """Convert a message to protobuf."""
    return copy_fields(pb.ChatMessage, message, parts=map(_part_to_proto, message.parts))


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
    schema = parse_json_object(f"{field}.input_schema", tool.input_schema)
    return Tool(tool.name, tool.description, schema, tool.strict)


def tool_to_proto(tool: Tool) -> pb.Tool:
    """Convert a tool to protobuf."""
    return copy_fields(pb.Tool, tool, input_schema=json.dumps(dict(tool.input_schema)).encode())


def choice_from_proto(field: str, choice: pb.ToolChoice) -> ToolChoice:
    """Convert a tool choice from protobuf.

    Raises InvalidArgumentError for a mode that is not in the contract.
    """
    if choice.mode not in _TOOL_CHOICE_MODES:
        raise field_error(f"{field}.mode", "must be a known mode")
    return ToolChoice(_TOOL_CHOICE_MODES[choice.mode], choice.name or None, choice.disable_parallel)


def choice_to_proto(choice: ToolChoice) -> pb.ToolChoice:
    """Convert a tool choice to protobuf."""
    return copy_fields(pb.ToolChoice, choice)


def parse_json_object(field: str, data: bytes) -> dict[str, Any]:
    """Parse a field that holds a JSON object.

    Raises:
        InvalidArgumentError: it does not.
    """
    try:
        document = jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise field_error(field, f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise field_error(field, "must be a JSON object")
    return document


def object_schema_from_proto(request: pb.GenerateObjectRequest) -> ResponseSchema:
    """Return the schema of a requested object."""
    schema = _optional_schema_from_proto("", request)
    if schema is None:
        raise field_error(".schema", "is required: the JSON Schema of the object")
    return schema


def request_from_proto(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> GenerateRequest:
    """Convert a request from protobuf."""
    check_request_id(request.request_id)
    return prompt_from_proto("", request)


def prompt_from_proto(field: str, prompt_message: Asking) -> GenerateRequest:
    """Convert a prompt with its options from protobuf.

    Args:
        field: path of the prompt in its request, for errors.
        prompt_message: a message with a prompt, options and optionally a schema.

    Raises:
        InvalidArgumentError: a field is wrong.
    """
    prompt = prompt_message.prompt
    return GenerateRequest(
        system=prompt.system or None,
        messages=tuple(
            message_from_proto(f"{field}.prompt.messages[{index}]", message)
            for index, message in enumerate(prompt.messages)
        ),
        tools=tuple(
            tool_from_proto(f"{field}.prompt.tools[{index}]", tool) for index, tool in enumerate(prompt.tools)
        ),
        tool_choice=choice_from_proto(f"{field}.prompt.tool_choice", prompt.tool_choice)
        if prompt.HasField("tool_choice")
        else None,
        schema=_optional_schema_from_proto(field, prompt_message),
        **options_from_proto(f"{field}.options", prompt_message.options).set_fields(),
    )


def options_from_proto(field: str, options: pb.GenerationOptions) -> GenerationOptions:
    """Convert generation options from protobuf; absent fields stay unset.

    Raises:
        InvalidArgumentError: an option is invalid.
    """
    if options.response_cache and options.response_cache not in _RESPONSE_CACHE_MODES:
        raise field_error(f"{field}.response_cache", "must be a known mode")
    if options.reasoning_effort and options.reasoning_effort not in _REASONING_EFFORTS:
        raise field_error(f"{field}.reasoning_effort", "must be a known effort")
    has = options.HasField
    return GenerationOptions(
        model=options.model or None,
        max_output_tokens=options.max_output_tokens if has("max_output_tokens") else None,
        answer_tokens=options.answer_tokens if has("answer_tokens") else None,
        reasoning_effort=_REASONING_EFFORTS.get(options.reasoning_effort),
        temperature=options.temperature if has("temperature") else None,
        seed=options.seed if has("seed") else None,
        stop_sequences=tuple(options.stop_sequences) or None,
        fallback_models=tuple(options.fallback_models) or None,
        cache=_cache_from_proto(f"{field}.cache", options.cache) if has("cache") else None,
        response_cache=_RESPONSE_CACHE_MODES.get(options.response_cache),
        budget=budget_from_proto(f"{field}.budget", options.budget) if has("budget") else None,
    )


def options_to_proto(options: GenerationOptions) -> pb.GenerationOptions:
    """Convert generation options to protobuf."""
    cache = options.cache
    return copy_fields(
        pb.GenerationOptions,
        options,
        cache=None if cache is None else copy_fields(pb.CacheConfig, cache, disabled=not cache.enabled),
        budget=None if options.budget is None else budget_to_proto(options.budget),
    )


def request_to_proto(request: GenerateRequest) -> pb.GenerateRequest:
    """Convert a request to protobuf, without the caller's own check: that runs in this process."""
    return pb.GenerateRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(
            system=request.system or "",
            messages=[message_to_proto(message) for message in request.messages],
            tools=[tool_to_proto(tool) for tool in request.tools],
            tool_choice=None if request.tool_choice is None else choice_to_proto(request.tool_choice),
        ),
        options=options_to_proto(GenerationOptions.from_request(request)),
        schema=None if request.schema is None else schema_to_proto(request.schema),
    )


def budget_from_proto(field: str, budget: common.Budget) -> Budget:
    """Convert a budget from protobuf; zero means no cap.

    Raises:
        InvalidArgumentError: a cap is negative, or the currency is not US dollars.
    """
    seconds = budget.max_time.ToNanoseconds() / 1e9
    caps = {
        "max_calls": budget.max_calls,
        "max_tokens": budget.max_tokens,
        "max_cost.pico_units": budget.max_cost.pico_units,
        "max_time": seconds,
    }
    for name, cap in caps.items():
        if cap < 0:
            raise field_error(f"{field}.{name}", "must be 0 (no cap) or more")
    if budget.max_cost.pico_units and budget.max_cost.currency_code != "USD":
        raise field_error(f"{field}.max_cost.currency_code", "must be USD: prices are in dollars")
    return Budget(
        max_calls=budget.max_calls or None,
        max_tokens=budget.max_tokens or None,
        max_cost=budget.max_cost.pico_units or None,
        max_seconds=seconds or None,
    )


def budget_to_proto(budget: Budget) -> common.Budget:
    """Convert a budget to protobuf."""
    return copy_fields(common.Budget, budget, max_time=budget.max_seconds)


def schema_from_proto(field: str, schema: pb.ResponseSchema) -> ResponseSchema:
    """Convert a schema from protobuf; raises InvalidArgumentError if it is not a JSON object."""
    document = parse_json_object(f"{field}.document", schema.document)
    return ResponseSchema(schema.name, document, advisory=schema.advisory)


def schema_to_proto(schema: ResponseSchema) -> pb.ResponseSchema:
    """Convert a schema to protobuf, without the caller's own check: that runs in this process."""
    return copy_fields(pb.ResponseSchema, schema, document=json.dumps(dict(schema.document)).encode())


def _cache_from_proto(field: str, cache: pb.CacheConfig) -> CacheConfig:
    if cache.ttl not in _CACHE_TTLS:
        raise field_error(f"{field}.ttl", "must be a known lifetime")
    return CacheConfig(not cache.disabled, _CACHE_TTLS[cache.ttl], cache.expected_reuse)


def _optional_schema_from_proto(field: str, prompt_message: Asking) -> ResponseSchema | None:
    if isinstance(prompt_message, pb.CountTokensRequest) or not prompt_message.HasField("schema"):
        return None
    return schema_from_proto(f"{field}.schema", prompt_message.schema)
