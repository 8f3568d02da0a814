"""Thought signatures: what Gemini wants back with the very part that it came with.

A signature is a `ProviderState` directly before its part. That of a call belongs to the next call; that of
a text says how many characters of the next text were its part, since neighbouring texts are joined.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import jiter

from peripety.errors import FieldViolation, InvalidArgumentError
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

    def to_state(self) -> ProviderState:
        """The signature as a conversation keeps it."""
        return ProviderState(ISSUER, json.dumps([self.value, self.characters]).encode())

    @classmethod
    def of(cls, state: ProviderState) -> Signature:
        """Read a signature of one's own.

        Raises:
            InvalidArgumentError: it was changed on the way.
        """
        try:
            match jiter.from_json(state.data):
                case [str(value), None]:
                    return cls(value)
                case [str(value), int(characters)] if characters >= 0:
                    return cls(value, characters)
        except ValueError:
            pass
        reason = f"has a state of {ISSUER} that is not as it was issued; send states back unchanged"
        raise InvalidArgumentError(
            f"The prompt cannot be sent: messages {reason}", violations=[FieldViolation("messages", reason)]
        )
