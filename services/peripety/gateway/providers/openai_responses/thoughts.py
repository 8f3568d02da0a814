"""What a model thought, encrypted, as it wants it back: unchanged, and in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.model import ProviderState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["keep_thought", "kept_thought"]

_ISSUER = "openai-responses"
_KEPT = ("type", "id", "summary", "content", "encrypted_content")


def keep_thought(model: str, item: Mapping[str, Any]) -> ProviderState | None:
    """Keep an item of thoughts, with the model that was asked.

    Returns:
        The state; None for an item without its encrypted content, which nobody could read again.
    """
    if not item.get("encrypted_content"):
        return None
    kept = {name: item[name] for name in _KEPT if item.get(name) is not None}
    return ProviderState(_ISSUER, json.dumps({"model": model, "item": kept}).encode())


def kept_thought(model: str, state: ProviderState) -> dict[str, Any] | None:
    """The item as it came; None when it came from another provider, or from another model."""
    if state.issuer != _ISSUER:
        return None
    try:
        kept = jiter.from_json(state.data)
    except ValueError:
        return None
    if not isinstance(kept, dict) or kept.get("model") != model:
        return None
    item = kept.get("item")
    return item if isinstance(item, dict) else None
