"""A neutral request as the body of a Chat Completions call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest, ResponseSchema
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["to_openai_body"]


def to_openai_body(request: GenerateRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """Write `request` as a streaming call of `model`; what was left open is left out."""
    optional = {
        dialect.limit_field: request.max_output_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "response_format": None if request.schema is None else _response_format(request.schema),
    }
    return {
        "model": model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        **{name: value for name, value in optional.items() if value is not None},
    }


def _messages(request: GenerateRequest) -> list[dict[str, str]]:
    system = [] if request.system is None else [{"role": "system", "content": request.system}]
    return system + [{"role": m.role.value, "content": m.content} for m in request.messages]


def _response_format(schema: ResponseSchema) -> dict[str, Any]:
    document = dict(schema.document)
    # llama.cpp reads this nested shape too and silently ignores its own flat one.
    return {
        "type": "json_schema",
        "json_schema": {"name": schema.name, "schema": document, "strict": _is_strict(document)},
    }


def _is_strict(node: Any) -> bool:
    """Whether the schema keeps to what strict mode allows: every object closed, every key required."""
    if isinstance(node, list):
        return all(map(_is_strict, node))
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object":
        closed = node.get("additionalProperties") is False
        if not closed or set(node.get("required", ())) != set(node.get("properties", {})):
            return False
    return all(map(_is_strict, node.values()))
