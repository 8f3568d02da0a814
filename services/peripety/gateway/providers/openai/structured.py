"""How a server that speaks Chat Completions is brought to answer by a schema."""

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
    """The call with what its schema adds to tools or messages, the fields that it adds, and the report."""
    strict_subset = call.data.traits.strict_schema
    asked = structured(call, lambda schema: told_schema(schema, strict_subset=strict_subset))
    schema, report = call.request.schema, asked.report
    if schema is None or report is None:
        return call, {}, None
    fields: dict[str, Any] = {}
    if asked.told is not None:
        # llama.cpp reads this nested shape too and silently ignores its own flat one.
        fields = {"response_format": {"type": "json_schema", "json_schema": asked.told}}
        report = SchemaReport(dialect.schema_method, report.dropped)
    elif report.method is SchemaMethod.GRAMMAR:
        # vLLM's own field, for what cannot be told in the common one.
        fields = {"structured_outputs": {"json": dict(schema.document)}}
    elif report.method is SchemaMethod.EXTRACTION and dialect.json_mode:
        is_object = schema.document.get("type") == "object"
        fields = {"response_format": {"type": "json_object"}} if is_object else {}
    return asked.call, fields, report


def told_schema(
    schema: ResponseSchema, *, strict_subset: bool
) -> tuple[Mapping[str, Any], tuple[Finding, ...]]:
    """A schema with its name as it is told, and what of it the answer is not held to.

    Args:
        schema: the schema.
        strict_subset: whether it has to be in the form of strict mode to be held to; another server has a
            way of its own to hold an answer to a schema, and reads more of it.
    """
    document = dict(schema.document)
    strict, dropped = to_strict_schema(document)
    if not strict_subset:
        strict, dropped = (strict if strict == document else None), ()
    return {"name": schema.name, "schema": strict or document, "strict": strict is not None}, dropped
