"""Seeded choices: hash-based numbers that depend only on a text, a seed and a variation."""

from __future__ import annotations

import hashlib

__all__ = ["Choices"]


class Choices:
    """Seeded choices for one text, seed and variation.

    Attributes:
        name: twelve digits that identify the choices.
    """

    def __init__(self, text: str, seed: int, variation: int = 0) -> None:
        self._base = f"{text}:{seed}"
        self._variation = variation
        self.name = hashlib.sha256(f"{self._base}:{variation}".encode("utf-8", "replace")).hexdigest()[:12]

    def number(self, tag: str, below: int) -> int:
        """Return a number for a tag, at least 0 and below a bound; each variation shifts it by one."""
        digest = hashlib.sha256(f"{self._base}:{tag}".encode("utf-8", "replace")).digest()
        return (int.from_bytes(digest[:8], "big") + self._variation) % below
