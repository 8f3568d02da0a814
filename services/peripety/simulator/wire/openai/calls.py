"""Who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Call

__all__ = ["credential"]


def credential(call: Call) -> str:
    """Who asks: a bearer token, or the key in the header that Azure reads."""
    return call.bearer or call.headers.get("api-key", "")
