"""A JSON Schema as OpenAI's strict mode takes it.

Every object is closed, and every key is required: an optional one may be null, which is read as left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.gateway.providers.subset import Subset, anything, write_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding

__all__ = ["to_strict_parameters", "to_strict_schema"]

_KEYWORDS = frozenset(
    {"type", "enum", "const", "description", "pattern", "multipleOf", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_STRICT_MODE = Subset(
    name="strict mode",
    keywords={**dict.fromkeys(_KEYWORDS, anything), "format": _FORMATS.__contains__},
    leaves_out=False,
    object_root=True,
    recursive=True,
    parts_choices=False,
    # Some models take ten levels; all of them take five.
    max_depth=5,
    max_keys=5000,
)
_LEAVING_OUT = replace(_STRICT_MODE, leaves_out=True)


def to_strict_schema(document: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """Bring a schema into the form that strict mode takes.

    Args:
        document: the JSON Schema (2020-12) of an answer.

    Returns:
        The schema, or None when strict mode cannot express it; and, as warnings with places in `document`,
        what it does not say any more, or why there is none.
    """
    written = write_schema(document, _STRICT_MODE)
    return written.schema, written.dropped


def to_strict_parameters(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Bring the schema of a tool's arguments into the form that strict mode takes.

    Returns:
        The schema; None when strict mode cannot express it, or only with nulls where the schema lets keys be
        left out: the arguments reach the tool as the model wrote them.
    """
    written = write_schema(document, _LEAVING_OUT)
    return None if written.optional else written.schema
