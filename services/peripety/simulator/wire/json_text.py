"""JSON text: strict parser and compact writer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter
from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["compact", "content", "parse"]


def parse(text: bytes) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: the text is not JSON, repeats a key, is nested too deeply, or has a number that is not
            finite; the message has the reason and the position.
    """
    value = jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    if b"Infinity" in compact(value):  # a number too large for a float, or a word within a text
        json.dumps(value, allow_nan=False)
    return value


def compact(value: Any) -> bytes:
    """Format a value as JSON in UTF-8 without spaces; the order of members is preserved."""
    return to_json(value)


def content(block: Mapping[str, Any], *without: str) -> bytes:
    """Return the cache key of a prompt block: equal bytes mean equal blocks.

    The order of the block's own members is irrelevant. The order within their values counts, as with the
    providers: tool arguments with another key order are another prompt.

    Args:
        block: the block, as sent.
        without: members that are not part of the model input, such as cache markers.
    """
    return compact({name: block[name] for name in sorted(block) if name not in without})
