"""Schemas in the dialect of Anthropic's structured output, for answers and for strict tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.gateway.providers.subset import Subset, Written, anything, write_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Shapes"]

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
# Regular-expression features that it lacks: lookaround, backreferences, word boundaries.
_BEYOND_PATTERNS = re.compile(r"\(\?(?!:)|\\[1-9bB]")
_MOST_OPTIONAL = 24
_MOST_UNIONS = 16


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list)


_STRUCTURED_OUTPUT = Subset(
    name="structured output",
    keywords={
        "type": anything,
        "description": anything,
        "const": _is_plain,
        "enum": lambda values: all(map(_is_plain, values)),
        "format": _FORMATS.__contains__,
        "minItems": (0, 1).__contains__,
        "pattern": lambda pattern: _BEYOND_PATTERNS.search(pattern) is None,
    },
    leaves_out=True,
    object_root=False,
    recursive=False,
    parts_choices=True,
)


class Shapes:
    """The schemas of one request, which share a limit on optional keys and unions."""

    def __init__(self) -> None:
        self._optional = _MOST_OPTIONAL
        self._unions = _MOST_UNIONS

    def write(self, document: Mapping[str, Any]) -> Written:
        """Convert a schema to the supported dialect; the result has no schema if that is impossible."""
        written = write_schema(document, _STRUCTURED_OUTPUT)
        if written.schema is None:
            return written
        if written.optional > self._optional:
            return _too_much(f"there are more than {_MOST_OPTIONAL} optional keys")
        if written.unions > self._unions:
            return _too_much(f"there are more than {_MOST_UNIONS} parts of several types")
        self._optional -= written.optional
        self._unions -= written.unions
        return written

    def tell(self, document: Mapping[str, Any]) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
        """Return the converted schema of an answer, and findings about what is not enforced."""
        written = self.write(document)
        return written.schema, written.dropped


def _too_much(problem: str) -> Written:
    return Written(
        None, (Finding("NOT_STRICT", "", f"structured output cannot be used: {problem}", Severity.WARNING),)
    )
