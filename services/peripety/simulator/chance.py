"""Deterministic random numbers, ids and signatures.

They are functions of the seed, the conversation and the number of its request. No other conversation has an
influence. A conversation therefore gets the same answers, byte for byte, in every run, in every order and
after every restart.
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
    """Random numbers of one request.

    Attributes:
        seed: the seed of the script.
        scope: the conversation.
        number: the number of the request in the conversation.
    """

    seed: int
    scope: str
    number: int

    def draw(self, purpose: str, index: int = 0) -> int:
        """Return an unsigned 64-bit integer that depends only on the purpose and the index."""
        return sim.draw(self.seed, f"{self.scope}/{purpose}", self.number, index)

    def id(self, purpose: str = "") -> str:
        """Return a unique id of 24 letters and digits."""
        text = f"{self.seed}/{self.scope}/{self.number}/{purpose}"
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


def signature(text: str) -> str:
    """Return an opaque signature for reasoning text, as some APIs issue it and require it back."""
    body = hashlib.sha256(text.encode()).digest()[:_CHECKED]
    return base64.b64encode(body + hashlib.sha256(body).digest()[:_CHECKED]).decode()


def is_signature(value: str) -> bool:
    """Return True if a signature was issued by this simulator."""
    try:
        whole = base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return (
        len(whole) == 2 * _CHECKED
        and hashlib.sha256(whole[:_CHECKED]).digest()[:_CHECKED] == whole[_CHECKED:]
    )
