"""Opaque state of the Responses API: encrypted reasoning, and the phase of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.providers.states import keep, kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.model import ProviderState
    from peripety.gateway.providers.base import Call

__all__ = ["keep_phase", "keep_thought", "kept_item"]

_KEPT = ("type", "id", "summary", "content", "encrypted_content")


def keep_thought(call: Call, item: Mapping[str, Any]) -> ProviderState | None:
    """Wrap a reasoning item.

    Returns:
        The state; None for an item without encrypted content, which cannot be sent back.
    """
    if not item.get("encrypted_content"):
        return None
    return keep(call, {name: item[name] for name in _KEPT if item.get(name) is not None})


def keep_phase(call: Call, item: Mapping[str, Any]) -> ProviderState | None:
    """Wrap the phase of the next text (commentary or answer); None if it is absent."""
    phase = item.get("phase")
    return keep(call, {"type": "message", "phase": phase}) if isinstance(phase, str) else None


def kept_item(call: Call, state: ProviderState) -> dict[str, Any]:
    """Unwrap an item; empty if another provider or another model issued it."""
    item = kept(call, state)
    return item if isinstance(item, dict) else {}
