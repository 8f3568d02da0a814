"""Who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Call

__all__ = ["credential"]


def credential(call: Call) -> str:
    """Who asks: a bearer token, or the key in the header that Azure reads."""
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else call.headers.get("api-key", "")
