"""Common parts of Gemini operations: credentials and pagination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.wire.gemini.checks import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.wire.base import Call

__all__ = ["key", "page"]

_PAGE_SIZE = 50
_LARGEST_PAGE = 1000


def key(call: Call) -> str:
    """Return the API key: from its own header, the query, or a bearer token."""
    return call.headers.get("x-goog-api-key") or call.params.get("key") or call.bearer


def page(name: str, items: Sequence[Any], call: Call) -> dict[str, Any]:
    """Return a page of a list, with the token of the next page."""
    size = _number(call, "pageSize", _PAGE_SIZE) or _PAGE_SIZE
    begin = _number(call, "pageToken", 0)
    end = begin + min(size, _LARGEST_PAGE)
    token = {"nextPageToken": str(end)} if end < len(items) else {}
    return {name: items[begin:end], **token}


def _number(call: Call, name: str, default: int) -> int:
    text = call.params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise invalid(f"Invalid value at '{name}' (TYPE_INT32), \"{text}\"", name)
    return int(text)
