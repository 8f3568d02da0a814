"""Thought signatures: opaque data that Gemini requires back with the part that it came with.

A signature is a `ProviderState` directly before its part. A call's signature applies to the next call. A
text's signature has the length of its part, because neighbouring texts are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.providers.states import keep, kept

if TYPE_CHECKING:
    from peripety.gateway.model import ProviderState
    from peripety.gateway.providers.base import Call

__all__ = ["UNSIGNED", "Signature"]

UNSIGNED = "skip_thought_signature_validator"
"""Documented replacement for the signature of a call by another model."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A thought signature and the part that it covers.

    Attributes:
        value: opaque.
        characters: for a text, the number of following characters that it covers; None for a call.
    """

    value: str
    characters: int | None = None

    def to_state(self, call: Call) -> ProviderState:
        """Return the signature as stored in a conversation; `call` is the call that was answered."""
        return keep(call, [self.value, self.characters])

    @classmethod
    def of(cls, state: ProviderState, call: Call) -> Signature | None:
        """Return the signature of a stored state; None if another model than the call's issued it."""
        match kept(call, state):
            case [str(value), None]:
                return cls(value)
            case [str(value), int(characters)] if characters >= 0:
                return cls(value, characters)
        return None
