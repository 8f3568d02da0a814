"""Protobuf codec of requests."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.gateway.messages.parts import (
    choice_from_proto,
    choice_to_proto,
    json_object,
    message_from_proto,
    message_to_proto,
    tool_from_proto,
    tool_to_proto,
)
from peripety.gateway.model import (
    Budget,
    CacheConfig,
    CacheTTL,
    GenerateRequest,
    Options,
    ResponseCacheMode,
    ResponseSchema,
)
from peripety.requests import check_request_id, refuse

if TYPE_CHECKING:
    from typing import TypeAlias

    Asking: TypeAlias = (
        pb.GenerateRequest | pb.GenerateObjectRequest | pb.GenerateItem | pb.CountTokensRequest
    )

__all__ = [
    "budget_from_proto",
    "budget_to_proto",
    "from_proto",
    "generate_request",
    "object_schema",
    "to_proto",
]

_RESPONSE_CACHE_MODES = {
    pb.RESPONSE_CACHE_MODE_UNSPECIFIED: None,
    pb.RESPONSE_CACHE_MODE_OFF: ResponseCacheMode.OFF,
    pb.RESPONSE_CACHE_MODE_USE: ResponseCacheMode.USE,
    pb.RESPONSE_CACHE_MODE_REFRESH: ResponseCacheMode.REFRESH,
}
_CACHE_TTLS = {
    pb.CACHE_TTL_UNSPECIFIED: CacheTTL.FIVE_MINUTES,
    pb.CACHE_TTL_FIVE_MINUTES: CacheTTL.FIVE_MINUTES,
    pb.CACHE_TTL_ONE_HOUR: CacheTTL.ONE_HOUR,
}


def object_schema(request: pb.GenerateObjectRequest) -> ResponseSchema:
    """Return the schema of a requested object."""
    schema = _schema("", request)
    if schema is None:
        raise refuse(".schema", "is required: the JSON Schema of the object")
    return schema


def generate_request(request: pb.GenerateRequest | pb.GenerateObjectRequest) -> GenerateRequest:
    """Convert a request from protobuf."""
    check_request_id(request.request_id)
    return from_proto("", request)


def from_proto(field: str, asking: Asking) -> GenerateRequest:
    """Convert a prompt with its options from protobuf.

    Args:
        field: path of the prompt in its request, for errors.
        asking: a message with a prompt, options and optionally a schema.

    Raises:
        InvalidArgumentError: a field is wrong.
    """
    prompt = asking.prompt
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
        schema=_schema(field, asking),
        **options_from_proto(f"{field}.options", asking.options).set_fields(),
    )


def options_from_proto(field: str, options: pb.GenerationOptions) -> Options:
    """Convert generation options from protobuf; absent fields stay unset.

    Raises:
        InvalidArgumentError: an option is invalid.
    """
    if options.response_cache not in _RESPONSE_CACHE_MODES:
        raise refuse(f"{field}.response_cache", "must be a known mode")
    has = options.HasField
    return Options(
        model=options.model or None,
        max_output_tokens=options.max_output_tokens if has("max_output_tokens") else None,
        temperature=options.temperature if has("temperature") else None,
        seed=options.seed if has("seed") else None,
        stop_sequences=tuple(options.stop_sequences) or None,
        fallback_models=tuple(options.fallback_models) or None,
        cache=_cache(f"{field}.cache", options.cache) if has("cache") else None,
        response_cache=_RESPONSE_CACHE_MODES[options.response_cache],
        budget=budget_from_proto(f"{field}.budget", options.budget) if has("budget") else None,
    )


def options_to_proto(options: Options) -> pb.GenerationOptions:
    """Convert generation options to protobuf."""
    cache, mode = options.cache, options.response_cache
    return pb.GenerationOptions(
        model=options.model or "",
        max_output_tokens=options.max_output_tokens,
        temperature=options.temperature,
        seed=options.seed,
        stop_sequences=options.stop_sequences,
        fallback_models=options.fallback_models,
        cache=None
        if cache is None
        else pb.CacheConfig(
            disabled=not cache.enabled,
            ttl=pb.CacheTtl.Value(f"CACHE_TTL_{cache.ttl.name}"),
            expected_reuse=cache.expected_reuse,
        ),
        response_cache=pb.RESPONSE_CACHE_MODE_UNSPECIFIED
        if mode is None
        else pb.ResponseCacheMode.Value(f"RESPONSE_CACHE_MODE_{mode.name}"),
        budget=None if options.budget is None else budget_to_proto(options.budget),
    )


def to_proto(request: GenerateRequest) -> pb.GenerateRequest:
    """Convert a request to protobuf, without the caller's own check: that runs in this process."""
    return pb.GenerateRequest(
        request_id=str(uuid.uuid4()),
        prompt=pb.Prompt(
            system=request.system or "",
            messages=[message_to_proto(message) for message in request.messages],
            tools=[tool_to_proto(tool) for tool in request.tools],
            tool_choice=None if request.tool_choice is None else choice_to_proto(request.tool_choice),
        ),
        options=options_to_proto(Options.of(request)),
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
            raise refuse(f"{field}.{name}", "must be 0 (no cap) or more")
    if budget.max_cost.pico_units and budget.max_cost.currency_code != "USD":
        raise refuse(f"{field}.max_cost.currency_code", "must be USD: prices are in dollars")
    return Budget(
        max_calls=budget.max_calls or None,
        max_tokens=budget.max_tokens or None,
        max_cost=budget.max_cost.pico_units or None,
        max_seconds=seconds or None,
    )


def budget_to_proto(budget: Budget) -> common.Budget:
    """Convert a budget to protobuf."""
    written = common.Budget(max_calls=budget.max_calls or 0, max_tokens=budget.max_tokens or 0)
    if budget.max_cost is not None:
        written.max_cost.currency_code, written.max_cost.pico_units = "USD", budget.max_cost
    if budget.max_seconds is not None:
        written.max_time.FromNanoseconds(round(budget.max_seconds * 1e9))
    return written


def schema_from_proto(field: str, schema: pb.ResponseSchema) -> ResponseSchema:
    """Convert a schema from protobuf; raises InvalidArgumentError if it is not a JSON object."""
    document = json_object(f"{field}.document", schema.document)
    return ResponseSchema(schema.name, document, advisory=schema.advisory)


def schema_to_proto(schema: ResponseSchema) -> pb.ResponseSchema:
    """Convert a schema to protobuf, without the caller's own check: that runs in this process."""
    document = json.dumps(dict(schema.document)).encode()
    return pb.ResponseSchema(name=schema.name, document=document, advisory=schema.advisory)


def _cache(field: str, cache: pb.CacheConfig) -> CacheConfig:
    if cache.ttl not in _CACHE_TTLS:
        raise refuse(f"{field}.ttl", "must be a known lifetime")
    return CacheConfig(not cache.disabled, _CACHE_TTLS[cache.ttl], cache.expected_reuse)


def _schema(field: str, asking: Asking) -> ResponseSchema | None:
    if isinstance(asking, pb.CountTokensRequest) or not asking.HasField("schema"):
        return None
    return schema_from_proto(f"{field}.schema", asking.schema)
