"""Validation of the form of test bodies, which models may get wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Shape"]


class Shape:
    """The form of the bodies of a kind of subject, with all members optional.

    Args:
        body_schema: the schema as shown to the model.
    """

    def __init__(self, body_schema: Mapping[str, Any]) -> None:
        self._schema = _lenient(body_schema)

    def misshapen(self, body: Mapping[str, Any]) -> list[Finding]:
        """Return the values of a wrong type; nulls count as missing."""
        return [
            Finding("BODY_INVALID", found.path, found.message)
            for found in check(self._schema, _without_nulls(body))
        ]


def _lenient(schema: Any) -> Any:
    """Return a schema of types only: members are optional, others are allowed, enums accept any text."""
    if isinstance(schema, list):
        return [_lenient(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    asked = {"required", "additionalProperties", "enum"}
    return {key: _lenient(part) for key, part in schema.items() if key not in asked}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return value
