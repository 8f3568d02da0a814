"""What the API wants back unchanged and in its place: encrypted thoughts, and the phase of a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.model import ProviderState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["keep_phase", "keep_thought", "kept_item"]

_ISSUER = "openai-responses"
_KEPT = ("type", "id", "summary", "content", "encrypted_content")


def keep_thought(model: str, item: Mapping[str, Any]) -> ProviderState | None:
    """Keep an item of thoughts, with the model that was asked.

    Returns:
        The state; None for an item without its encrypted content, which nobody could read again.
    """
    if not item.get("encrypted_content"):
        return None
    return _kept(model, {name: item[name] for name in _KEPT if item.get(name) is not None})


def keep_phase(model: str, item: Mapping[str, Any]) -> ProviderState | None:
    """Keep whether the text that follows is a remark on the way or the answer; None when that is not told."""
    phase = item.get("phase")
    return _kept(model, {"type": "message", "phase": phase}) if isinstance(phase, str) else None


def kept_item(model: str, state: ProviderState) -> dict[str, Any]:
    """The item as it was kept; empty when it came from another provider, or from another model."""
    if state.issuer != _ISSUER:
        return {}
    try:
        kept = jiter.from_json(state.data)
    except ValueError:
        return {}
    item = kept.get("item") if isinstance(kept, dict) and kept.get("model") == model else None
    return item if isinstance(item, dict) else {}


def _kept(model: str, item: Mapping[str, Any]) -> ProviderState:
    return ProviderState(_ISSUER, json.dumps({"model": model, "item": item}).encode())
