"""Dialects of Chat Completions servers, as data: OpenAI, Azure, DeepSeek and compatible ones.

A dialect selects the method of structured output and the vocabulary of errors. In OpenAI's strict mode,
every object of a schema is closed, and every key is required: an optional key may be null, which is read as
absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from peripety.gateway.providers.error_mapping import ErrorVocabulary
from peripety.gateway.providers.schema_dialect import SchemaDialect, adapt_call, convert_schema, is_any
from peripety.gateway.types.response import SchemaMethod, SchemaReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding
    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.request import ResponseSchema


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of server; differences between models are in the catalog.

    Attributes:
        path: path of calls, relative to the base URL.
        deployment_path: the same for models with an API version.
        key_header: the header of the key.
        key_prefix: prefix of the key in the header.
        schema_method: how the server enforces a schema.
        json_mode: whether it can enforce arbitrary JSON where it cannot enforce the schema.
        cache_controls: whether it accepts a cache key and breakpoints.
        can_disable_parallel: whether parallel tool calls can be disabled.
        disable_reasoning: the fields that disable reasoning; empty if that is impossible.
        max_stops: the maximum number of stop sequences.
        has_inline_reasoning: whether reasoning may be in the text, between tags.
        opens_reasoning: models whose templates open the reasoning: only the closing tag is in the text.
    """

    path: str = "/chat/completions"
    deployment_path: str | None = None
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    schema_method: SchemaMethod = SchemaMethod.NATIVE
    json_mode: bool = False
    cache_controls: bool = False
    can_disable_parallel: bool = True
    disable_reasoning: Mapping[str, Any] = field(default_factory=dict)
    max_stops: int = 16
    has_inline_reasoning: bool = False
    opens_reasoning: re.Pattern[str] | None = None


OPENAI = Dialect(
    json_mode=True,
    cache_controls=True,
    disable_reasoning={"reasoning_effort": "none"},
    max_stops=4,
)
AZURE = Dialect(
    path="/openai/v1/chat/completions",
    deployment_path="/openai/deployments/{model}/chat/completions?api-version={api_version}",
    key_header="api-key",
    key_prefix="",
    json_mode=True,
    cache_controls=True,
    disable_reasoning={"reasoning_effort": "none"},
    max_stops=4,
)
# Its `user_id` would separate the caches of callers; all callers share one account and one cache.
DEEPSEEK = Dialect(
    json_mode=True,
    can_disable_parallel=False,
    disable_reasoning={"thinking": {"type": "disabled"}},
)
# llama.cpp, vLLM and similar servers compile a schema to a grammar for the sampler.
GENERIC = Dialect(
    schema_method=SchemaMethod.GRAMMAR,
    has_inline_reasoning=True,
    opens_reasoning=re.compile(r"deepseek-r1|qwq|qwen3.*thinking", re.IGNORECASE),
)


_KEYWORDS = frozenset(
    {"type", "enum", "const", "description", "pattern", "multipleOf", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_STRICT_DIALECT = SchemaDialect(
    name="strict mode",
    keywords={**dict.fromkeys(_KEYWORDS, is_any), "format": _FORMATS.__contains__},
    allows_optional_keys=False,
    object_root=True,
    allows_recursion=True,
    allows_overlapping_choices=False,
    # Some models accept ten levels; all of them accept five.
    max_depth=5,
    max_keys=5000,
)
_OPTIONAL_KEYS_DIALECT = replace(_STRICT_DIALECT, allows_optional_keys=True)


def to_strict_schema(document: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """Convert a schema to strict mode.

    Args:
        document: the JSON Schema (2020-12) of an answer.

    Returns:
        The schema, or None if strict mode cannot express it; and, as warnings with paths in `document`, the
        dropped keywords, or the reason for None.
    """
    written = convert_schema(document, _STRICT_DIALECT)
    return written.schema, written.dropped


def to_strict_parameters(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert the schema of a tool's arguments to strict mode.

    Returns:
        The schema; None if strict mode cannot express it, or only with nulls for optional keys: the arguments
        reach the tool as the model wrote them.
    """
    written = convert_schema(document, _OPTIONAL_KEYS_DIALECT)
    return None if written.optional else written.schema


def with_schema(
    call: ProviderCall,
    dialect: Dialect,
) -> tuple[ProviderCall, dict[str, Any], SchemaReport | None]:
    """Return the call adapted to its schema, the request fields for it, and the report."""
    strict_subset = call.data.traits.strict_schema
    asked = adapt_call(call, lambda schema: schema_as_sent(schema, strict_subset=strict_subset))
    schema, report = call.request.schema, asked.report
    if schema is None or report is None:
        return call, {}, None
    fields: dict[str, Any] = {}
    if asked.native_schema is not None:
        # llama.cpp accepts this nested shape too, and silently ignores its own flat one.
        fields = {"response_format": {"type": "json_schema", "json_schema": asked.native_schema}}
        report = SchemaReport(dialect.schema_method, report.dropped)
    elif report.method is SchemaMethod.GRAMMAR:
        # vLLM's own field, for options that the common one lacks.
        fields = {"structured_outputs": {"json": dict(schema.document)}}
    elif report.method is SchemaMethod.EXTRACTION and dialect.json_mode:
        is_object = schema.document.get("type") == "object"
        fields = {"response_format": {"type": "json_object"}} if is_object else {}
    return asked.call, fields, report


def schema_as_sent(
    schema: ResponseSchema,
    *,
    strict_subset: bool,
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


_PERMANENT_LIMITS = frozenset(
    {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active"},
)
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})

VOCABULARY = ErrorVocabulary(
    statuses={
        "invalid_request_error": 400,
        "authentication_error": 401,
        "permission_error": 403,
        "not_found_error": 404,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "internal_error": 500,
        "server_error": 500,
        "service_unavailable_error": 503,
        **dict.fromkeys(_PERMANENT_LIMITS, 429),
        **dict.fromkeys(_TOO_LONG, 400),
    },
    permanent_limits=_PERMANENT_LIMITS,
    too_long=_TOO_LONG,
)
