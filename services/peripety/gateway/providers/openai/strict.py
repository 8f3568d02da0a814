"""JSON Schema in the form of OpenAI's strict mode.

Every object is closed, and every key is required: an optional key may be null, which is read as absent.
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
    # Some models accept ten levels; all of them accept five.
    max_depth=5,
    max_keys=5000,
)
_LEAVING_OUT = replace(_STRICT_MODE, leaves_out=True)


def to_strict_schema(document: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    """Convert a schema to strict mode.

    Args:
        document: the JSON Schema (2020-12) of an answer.

    Returns:
        The schema, or None if strict mode cannot express it; and, as warnings with paths in `document`, the
        dropped keywords, or the reason for None.
    """
    written = write_schema(document, _STRICT_MODE)
    return written.schema, written.dropped


def to_strict_parameters(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert the schema of a tool's arguments to strict mode.

    Returns:
        The schema; None if strict mode cannot express it, or only with nulls for optional keys: the arguments
        reach the tool as the model wrote them.
    """
    written = write_schema(document, _LEAVING_OUT)
    return None if written.optional else written.schema
