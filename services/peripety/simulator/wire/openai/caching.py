"""Prompt cache members of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.wire.reading import Fields

__all__ = ["MEMBERS", "marker", "read_controls"]

MEMBERS = ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention")

_ANY = frozenset(MEMBERS)
_MODES = ("implicit", "explicit")
_TTLS = ("30m", "12h")


def marker(part: Fields) -> Marker | None:
    """Return the breakpoint on a content part; without a TTL of its own, it has the TTL of the request."""
    breakpoint_ = part.object("prompt_cache_breakpoint", None)
    if breakpoint_ is None:
        return None
    breakpoint_.only("mode", "ttl")
    breakpoint_.choice("mode", ("explicit",))
    return Marker(breakpoint_.choice("ttl", _TTLS, ""))


def read_controls(body: Fields, options: Sequence[str], ttls: Sequence[str]) -> dict[str, Any]:
    """Return the cache controls of a request, as sent.

    Args:
        body: the request.
        options: the members of `prompt_cache_options`.
        ttls: the valid TTLs.
    """
    if _ANY.isdisjoint(body.value):
        return {}
    body.text("prompt_cache_key", None)
    body.choice("prompt_cache_retention", ("in_memory", "24h"), None)
    given = body.object("prompt_cache_options", None)
    if given is not None:
        given.only(*options)
        given.choice("mode", _MODES, None)
        given.choice("ttl", ttls, None)
        given.text("comparison_response_id", None)
        given.flag("prewarm", None)
    return {name: body.value[name] for name in MEMBERS if body.value.get(name) is not None}
