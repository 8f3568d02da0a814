"""A neutral request as the body of a Chat Completions call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import SchemaMethod, SchemaReport
from peripety.gateway.providers.openai.strict import to_strict_schema
from peripety.gateway.providers.wire import Body

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest, ResponseSchema
    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["to_openai_body"]


def to_openai_body(call: Call, dialect: Dialect) -> Body:
    """Write a call down as a streaming one; what was left open is left out."""
    request = call.request
    response_format, report = (None, None) if request.schema is None else _structured(request.schema, dialect)
    optional = {
        dialect.limit_field: request.max_output_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "response_format": response_format,
    }
    body = {
        "model": call.model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        **{name: value for name, value in optional.items() if value is not None},
    }
    return Body(body, report)


def _messages(request: GenerateRequest) -> list[dict[str, str]]:
    system = [] if request.system is None else [{"role": "system", "content": request.system}]
    return system + [{"role": m.role.value, "content": m.text} for m in request.messages]


def _structured(schema: ResponseSchema, dialect: Dialect) -> tuple[dict[str, Any], SchemaReport]:
    """The format to ask for, and what of the schema it does not hold the answer to."""
    document = dict(schema.document)
    strict, dropped = to_strict_schema(document)
    if not dialect.strict_subset:
        # Such a server has a way of its own to hold an answer to a schema, and reads more of it.
        strict, dropped = (None if dropped else document), ()
    # llama.cpp reads this nested shape too and silently ignores its own flat one.
    told = {"name": schema.name, "schema": strict or document, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": told}, SchemaReport(SchemaMethod.NATIVE, dropped)
