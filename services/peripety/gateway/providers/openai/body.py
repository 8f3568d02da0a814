"""Request body of a Chat Completions call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation
from peripety.gateway.catalogue import Capability
from peripety.gateway.providers.openai.caching import cache_fields
from peripety.gateway.providers.openai.messages import to_messages
from peripety.gateway.providers.openai.structured import with_schema
from peripety.gateway.providers.openai.tools import nested_tools
from peripety.gateway.providers.refusing import (
    forced_tool,
    one_call_at_a_time,
    refuse_inexpressible,
    too_many_stops,
)
from peripety.gateway.providers.wire import Body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["to_openai_body"]


def to_openai_body(call: Call, dialect: Dialect) -> Body:
    """Return the body of a streaming call.

    Raises:
        InvalidArgumentError: the model does not support the request.
    """
    refuse_inexpressible(call, _without_words(call.request, dialect))
    call, schema_fields, report = with_schema(call, dialect)
    return Body(
        {
            "model": call.model,
            "messages": to_messages(call),
            "stream": True,
            "stream_options": {"include_usage": True},
            **_options(call),
            **nested_tools(call),
            **_without_reasoning(call, dialect),
            **schema_fields,
            **(cache_fields(call) if dialect.cache_controls else {}),
        },
        report,
    )


def _options(call: Call) -> dict[str, Any]:
    request, data = call.request, call.data
    options = {
        data.traits.length_field: request.max_output_tokens or data.usual_output_tokens,
        "temperature": request.temperature if data.traits.sampling else None,
        "seed": request.seed if Capability.SEED in data.capabilities else None,
        "stop": list(request.stop_sequences) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _without_words(request: GenerateRequest, dialect: Dialect) -> Iterator[FieldViolation]:
    """Yield options that the server does not support and that change the meaning if omitted."""
    yield from too_many_stops(request, dialect.max_stops)
    if not dialect.one_call_at_a_time:
        yield from one_call_at_a_time(request)


def _without_reasoning(call: Call, dialect: Dialect) -> dict[str, Any]:
    """Return the fields that disable reasoning, for a model that otherwise rejects tools."""
    in_the_way = list(_in_the_way_of_reasoning(call))
    if not in_the_way:
        return {}
    reasons = Capability.REASONING in call.data.capabilities
    if not (reasons and call.data.traits.reasoning_can_be_off and dialect.without_reasoning):
        refuse_inexpressible(call, in_the_way)
    return dict(dialect.without_reasoning)


def _in_the_way_of_reasoning(call: Call) -> Iterator[FieldViolation]:
    request, traits = call.request, call.data.traits
    reasons = Capability.REASONING in call.data.capabilities
    if request.tools and reasons and not traits.tools_while_reasoning:
        reason = f"are not supported while it reasons; use openai-responses/{call.model}, or another model"
        yield FieldViolation("tools", reason)
    yield from forced_tool(call)
