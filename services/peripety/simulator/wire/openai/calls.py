"""Credentials of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Call

__all__ = ["credential"]


def credential(call: Call) -> str:
    """Return the bearer token, or the key in Azure's header."""
    return call.bearer or call.headers.get("api-key", "")
