"""Conversion between Python values and the engine's values.

The engine's values are JSON whose numbers are floats. Objects of a caller must satisfy the limits of
documents.
"""

from __future__ import annotations

import math
from typing import Any

from peripety.sim._core import CoreError
from peripety.sim._pure import border

__all__ = ["plain_of", "value_of"]


def value_of(plain: Any) -> Any:
    """Convert a Python object, or parse the JSON in a `bytes`; the result shares nothing with it.

    Raises:
        CoreError: as the strict parser, and `NOT_JSON` for values without a JSON form.
    """
    return border.parse(plain) if isinstance(plain, bytes) else _Reader().value(plain, 0)


def plain_of(value: Any) -> Any:
    """Convert to Python objects; a number is an int if it is a safe integer, else a float."""
    if isinstance(value, float):
        return int(value) if abs(value) <= border.MAX_SAFE_INTEGER and value.is_integer() else value
    if isinstance(value, list):
        return [plain_of(item) for item in value]
    if isinstance(value, dict):
        return {key: plain_of(value[key]) for key in sorted(value)}
    return value


class _Reader:
    """Walk through a Python object, which may be cyclic. Subclasses are treated as their base types."""

    def __init__(self) -> None:
        self.nodes = 0
        self.size = 0

    def value(self, plain: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > border.MAX_NODES:
            raise CoreError("TOO_MANY_NODES", f"more than {border.MAX_NODES} values")
        if plain is None or isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            return self.text(plain, border.MAX_STRING_BYTES, "STRING_TOO_LONG")
        if isinstance(plain, int):
            return _integer(int.__int__(plain))
        if isinstance(plain, float):
            return _float(float.__float__(plain))
        if isinstance(plain, dict):
            return self.object(plain, _nested(depth))
        if isinstance(plain, list | tuple):
            depth = _nested(depth)
            items = list.__iter__(plain) if isinstance(plain, list) else tuple.__iter__(plain)
            return [self.value(item, depth) for item in items]
        raise CoreError("NOT_JSON", f"a {type(plain).__name__} is not a JSON value")

    def object(self, plain: dict[Any, Any], depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, member in dict.items(plain):
            if not isinstance(key, str):
                raise CoreError("NOT_JSON", "the keys of an object are strings")
            name = self.text(key, border.MAX_KEY_BYTES, "KEY_TOO_LONG")
            members[name] = self.value(member, depth)
        return members

    def text(self, plain: str, limit: int, code: str) -> str:
        try:
            size = len(str.encode(plain, "utf-8"))
        except UnicodeEncodeError:
            raise CoreError("LONE_SURROGATE", "a lone surrogate is not a character") from None
        if size > limit:
            raise CoreError(code, f"longer than {limit} bytes")
        self.size += size
        if self.size > border.MAX_CANONICAL_BYTES:
            message = f"the texts have more than {border.MAX_CANONICAL_BYTES} bytes together"
            raise CoreError("DOCUMENT_TOO_LARGE", message)
        return str.__str__(plain)


def _nested(depth: int) -> int:
    if depth == border.MAX_DEPTH:
        raise CoreError("TOO_DEEP", f"nested deeper than {border.MAX_DEPTH} levels")
    return depth + 1


def _integer(plain: int) -> float:
    if abs(plain) > border.MAX_SAFE_INTEGER:
        raise CoreError("NUMBER_RANGE", "an integer must lie within ±9007199254740991")
    return float(plain)


def _float(plain: float) -> float:
    if not math.isfinite(plain):
        raise CoreError("NUMBER_RANGE", "the number does not fit binary64")
    return plain + 0.0  # -0 becomes 0
