"""Opaque provider state: stored with the model that issued it; no other model can read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.gateway.model import ProviderState

if TYPE_CHECKING:
    from peripety.gateway.providers.base import Call

__all__ = ["keep", "kept"]


def keep(call: Call, value: Any) -> ProviderState:
    """Wrap a JSON value that came with the answer to a call."""
    return ProviderState(call.data.provider, json.dumps({"model": call.model, "kept": value}).encode())


def kept(call: Call, state: ProviderState) -> Any:
    """Unwrap a value for a call to the model that issued it; None for any other model."""
    if state.issuer != call.data.provider:
        return None
    try:
        found = jiter.from_json(state.data)
    except ValueError:
        return None
    return found.get("kept") if isinstance(found, dict) and found.get("model") == call.model else None
