"""API key fingerprints, safe to store and log."""

from __future__ import annotations

import hashlib

__all__ = ["fingerprint"]

LENGTH = 12


def fingerprint(key: str) -> str:
    """Return the first digits of the SHA-256 of a key; `-` for an empty key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH] if key else "-"
