"""How a server that speaks Chat Completions is brought to answer by a schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import SchemaMethod, SchemaReport
from peripety.gateway.providers.openai.strict import to_strict_schema
from peripety.gateway.providers.schemas import method_of, with_answer_tool, with_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.gateway.model import ResponseSchema
    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["structured", "told_schema"]


def structured(call: Call, dialect: Dialect) -> tuple[Call, dict[str, Any], SchemaReport | None]:
    """The call with what its schema adds to tools or messages, the fields that it adds, and the report."""
    request, schema, method = call.request, call.request.schema, method_of(call)
    if schema is None or method is None:
        return call, {}, None
    match method:
        case SchemaMethod.NATIVE:
            told, dropped = told_schema(schema, strict_subset=call.data.traits.strict_schema)
            # llama.cpp reads this nested shape too and silently ignores its own flat one.
            fields = {"response_format": {"type": "json_schema", "json_schema": told}}
            return call, fields, SchemaReport(dialect.schema_method, dropped)
        case SchemaMethod.TOOL:
            asked = replace(call, request=with_answer_tool(request, schema))
            return asked, {}, SchemaReport(method)
        case SchemaMethod.GRAMMAR:
            # vLLM's own field, for what cannot be told in the common one.
            return call, {"structured_outputs": {"json": dict(schema.document)}}, SchemaReport(method)
        case SchemaMethod.EXTRACTION:
            asked = replace(call, request=replace(request, messages=with_hint(request.messages, schema)))
            is_object = schema.document.get("type") == "object"
            fields = {"response_format": {"type": "json_object"}} if dialect.json_mode and is_object else {}
            return asked, fields, SchemaReport(method)


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
