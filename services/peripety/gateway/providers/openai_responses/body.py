"""Request body of a Responses call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation
from peripety.gateway.catalogue import Capability
from peripety.gateway.providers.openai import OPENAI
from peripety.gateway.providers.openai.caching import cache_fields
from peripety.gateway.providers.openai.structured import with_schema
from peripety.gateway.providers.openai.tools import flat_tools
from peripety.gateway.providers.openai_responses.items import to_items
from peripety.gateway.providers.refusing import forced_tool, refuse_inexpressible
from peripety.gateway.providers.wire import Body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.gateway.providers.base import Call

__all__ = ["to_counted", "to_responses_body"]

_COUNTED = frozenset({"model", "input", "tools", "tool_choice", "parallel_tool_calls", "text"})


def to_responses_body(call: Call) -> Body:
    """Return the body of a streaming call without storage on the server.

    Raises:
        InvalidArgumentError: the API does not support the request.
    """
    refuse_inexpressible(call, _without_words(call))
    call, schema_fields, report = with_schema(call, OPENAI)
    return Body(
        {
            "model": call.model,
            "input": to_items(call),
            "stream": True,
            "store": False,
            **_options(call),
            **flat_tools(call),
            **_text(schema_fields),
            **cache_fields(call),
        },
        report,
    )


def to_counted(call: Call) -> dict[str, Any]:
    """Return the fields of a call that form its prompt."""
    document = to_responses_body(call).document
    return {name: value for name, value in document.items() if name in _COUNTED}


def _options(call: Call) -> dict[str, Any]:
    request, data = call.request, call.data
    options = {
        "max_output_tokens": request.max_output_tokens or data.usual_output_tokens,
        "temperature": request.temperature if data.traits.sampling else None,
        # Without a copy on the server, the next turn has to include the reasoning.
        "include": ["reasoning.encrypted_content"] if Capability.REASONING in data.capabilities else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _text(schema_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of an answer; Chat Completions nest it, this API does not."""
    if "response_format" not in schema_fields:
        return {}
    told = dict(schema_fields["response_format"])
    return {"text": {"format": told | told.pop("json_schema", {})}}


def _without_words(call: Call) -> Iterator[FieldViolation]:
    if call.request.stop_sequences:
        reason = f"are not supported by the Responses API; remove them, or use openai/{call.model}"
        yield FieldViolation("stop_sequences", reason)
    yield from forced_tool(call)
