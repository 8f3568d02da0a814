"""JSON as text: bodies are read strictly, answers are written compactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter
from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["compact", "content", "parse"]


def parse(text: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, repeats a key, is nested too deeply, or has a number that is not finite; the
            message says what and where.
    """
    value = jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    if b"Infinity" in compact(value):  # as a number that is too large for a float was read, or within a text
        json.dumps(value, allow_nan=False)
    return value


def compact(value: Any) -> bytes:
    """The JSON text of a value, in UTF-8, without spaces; the members of objects keep their order."""
    return to_json(value)


def content(block: Mapping[str, Any], *without: str) -> bytes:
    """A block of a prompt as what a cache compares: two blocks are the same if these bytes are.

    The order of the block's own members does not matter. The order within their values does, as it does to
    the providers: a tool's arguments with their keys in another order are another prompt.

    Args:
        block: the block as it was sent.
        without: members that are not a part of what the model reads, such as cache markers.
    """
    return compact({name: block[name] for name in sorted(block) if name not in without})
