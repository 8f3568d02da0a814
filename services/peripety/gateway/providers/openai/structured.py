"""Structured output of Chat Completions servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import SchemaMethod, SchemaReport
from peripety.gateway.providers.openai.strict import to_strict_schema
from peripety.gateway.providers.schemas import structured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.gateway.model import ResponseSchema
    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["told_schema", "with_schema"]


def with_schema(call: Call, dialect: Dialect) -> tuple[Call, dict[str, Any], SchemaReport | None]:
    """Return the call adapted to its schema, the request fields for it, and the report."""
    strict_subset = call.data.traits.strict_schema
    asked = structured(call, lambda schema: told_schema(schema, strict_subset=strict_subset))
    schema, report = call.request.schema, asked.report
    if schema is None or report is None:
        return call, {}, None
    fields: dict[str, Any] = {}
    if asked.told is not None:
        # llama.cpp accepts this nested shape too, and silently ignores its own flat one.
        fields = {"response_format": {"type": "json_schema", "json_schema": asked.told}}
        report = SchemaReport(dialect.schema_method, report.dropped)
    elif report.method is SchemaMethod.GRAMMAR:
        # vLLM's own field, for options that the common one lacks.
        fields = {"structured_outputs": {"json": dict(schema.document)}}
    elif report.method is SchemaMethod.EXTRACTION and dialect.json_mode:
        is_object = schema.document.get("type") == "object"
        fields = {"response_format": {"type": "json_object"}} if is_object else {}
    return asked.call, fields, report


def told_schema(
    schema: ResponseSchema, *, strict_subset: bool
) -> tuple[Mapping[str, Any], tuple[Finding, ...]]:
    """Return a named schema as sent, and findings about what is not enforced.

    Args:
        schema: the schema.
        strict_subset: whether enforcement requires strict mode; other servers enforce more of a schema.
    """
    document = dict(schema.document)
    strict, dropped = to_strict_schema(document)
    if not strict_subset:
        strict, dropped = (strict if strict == document else None), ()
    return {"name": schema.name, "schema": strict or document, "strict": strict is not None}, dropped
