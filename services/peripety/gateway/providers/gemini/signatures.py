"""Thought signatures: what Gemini wants back with the very part that it came with.

A signature is a `ProviderState` directly before its part. That of a call belongs to the next call; that of
a text says how many characters of the next text were its part, since neighbouring texts are joined.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import jiter

from peripety.gateway.model import ProviderState

__all__ = ["ISSUER", "UNSIGNED", "Signature"]

ISSUER = "gemini"

UNSIGNED = "skip_thought_signature_validator"
"""Documented: stands for the signature of a call that another model made."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A thought signature and the part that it belongs to.

    Attributes:
        value: opaque.
        characters: of a text, how many characters of what follows; None for a call.
    """

    value: str
    characters: int | None = None

    def to_state(self, model: str) -> ProviderState:
        """The signature as a conversation keeps it, with the model that was asked."""
        return ProviderState(ISSUER, json.dumps([model, self.value, self.characters]).encode())

    @classmethod
    def of(cls, state: ProviderState, model: str) -> Signature | None:
        """The signature as it came; None when it came from another provider, or from another model."""
        if state.issuer != ISSUER:
            return None
        try:
            kept = jiter.from_json(state.data)
        except ValueError:
            return None
        match kept:
            case [issuer, str(value), None] if issuer == model:
                return cls(value)
            case [issuer, str(value), int(characters)] if issuer == model and characters >= 0:
                return cls(value, characters)
        return None
