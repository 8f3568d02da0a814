"""What a model thought, as it wants it back: unchanged, and in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.model import ProviderState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ISSUER", "keep_thought", "kept_thought"]

ISSUER = "anthropic"


def keep_thought(model: str, block: Mapping[str, Any]) -> ProviderState:
    """Keep a block of thoughts, with the model that was asked: no other one can read its signature."""
    return ProviderState(ISSUER, json.dumps({"model": model, "block": block}).encode())


def kept_thought(model: str, state: ProviderState) -> dict[str, Any] | None:
    """The block as it came; None when it came from another provider, or from another model."""
    if state.issuer != ISSUER:
        return None
    try:
        kept = jiter.from_json(state.data)
    except ValueError:
        return None
    if not isinstance(kept, dict) or kept.get("model") != model:
        return None
    block = kept.get("block")
    return block if isinstance(block, dict) else None
