"""Thought signatures: what Gemini wants back with the very part that it came with.

A signature is a `ProviderState` directly before its part. That of a call belongs to the next call; that of
a text says how many characters of the next text were its part, since neighbouring texts are joined.
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

    def to_state(self, call: Call) -> ProviderState:
        """The signature, which came with the answer to a call, as a conversation keeps it."""
        return keep(call, [self.value, self.characters])

    @classmethod
    def of(cls, state: ProviderState, call: Call) -> Signature | None:
        """The signature as it came; None when it came from another model than the call's."""
        match kept(call, state):
            case [str(value), None]:
                return cls(value)
            case [str(value), int(characters)] if characters >= 0:
                return cls(value, characters)
        return None
