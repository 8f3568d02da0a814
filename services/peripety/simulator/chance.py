"""Chance, ids and signatures: functions of the seed, the conversation and the number of its request.

Nothing here depends on what other conversations do, so that a conversation gets the same answers, to the
byte, in every run, in every order, after every restart.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from peripety import sim

__all__ = ["Chance", "is_signature", "signature"]

_ID_LENGTH = 24
_CHECKED = 18


@dataclass(frozen=True, slots=True)
class Chance:
    """What is random about one request.

    Attributes:
        seed: the scenario's.
        scope: the conversation.
        number: which of the conversation's requests it is.
    """

    seed: int
    scope: str
    number: int

    def draw(self, purpose: str, index: int = 0) -> int:
        """An unsigned 64-bit integer; the same for the same purpose and index."""
        return sim.draw(self.seed, f"{self.scope}/{purpose}", self.number, index)

    def id(self, purpose: str = "") -> str:
        """24 letters and digits that nothing else has."""
        text = f"{self.seed}/{self.scope}/{self.number}/{purpose}"
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


def signature(text: str) -> str:
    """The opaque proof that a thought is the model's own, as some APIs issue it and want it back."""
    body = hashlib.sha256(text.encode()).digest()[:_CHECKED]
    return base64.b64encode(body + hashlib.sha256(body).digest()[:_CHECKED]).decode()


def is_signature(value: str) -> bool:
    """Whether a signature was issued here."""
    try:
        whole = base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return (
        len(whole) == 2 * _CHECKED
        and hashlib.sha256(whole[:_CHECKED]).digest()[:_CHECKED] == whole[_CHECKED:]
    )
