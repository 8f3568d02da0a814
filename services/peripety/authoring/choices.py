"""Choices that look free and follow from a text and a seed."""

from __future__ import annotations

import hashlib

__all__ = ["Choices"]


class Choices:
    """Choices that look free and are fixed by a text, a seed and a variation.

    Attributes:
        name: twelve digits that tell these choices from others.
    """

    def __init__(self, text: str, seed: int, variation: int = 0) -> None:
        self._base = f"{text}:{seed}"
        self._variation = variation
        self.name = hashlib.sha256(f"{self._base}:{variation}".encode("utf-8", "replace")).hexdigest()[:12]

    def number(self, tag: str, below: int) -> int:
        """A number for a tag, 0 or more and below a bound; the next variation takes the next one."""
        digest = hashlib.sha256(f"{self._base}:{tag}".encode("utf-8", "replace")).digest()
        return (int.from_bytes(digest[:8], "big") + self._variation) % below
