"""Keys as they may be written down."""

from __future__ import annotations

import hashlib

__all__ = ["fingerprint"]

LENGTH = 12


def fingerprint(key: str) -> str:
    """A name for a key, from which it cannot be found: the first digits of its SHA-256; `-` is no key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH] if key else "-"
