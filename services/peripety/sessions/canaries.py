"""Canaries: random words in restricted state, which make a leak detectable in the narration."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["canary", "planted"]

KEY = "canary"
_LETTERS = 20
_MOST = 8


def canary(seed: int, place: str) -> str:
    """Return a word that does not occur by chance, determined by seed and place."""
    digest = hashlib.sha256(f"{seed} {place}".encode()).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in digest[:_LETTERS])


def planted(spec: Mapping[str, Any], pov: str | None, seed: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Insert canaries into the hidden state and into the private state of some other entities.

    Args:
        spec: the specification.
        pov: the entity that must not learn the words; None for the public.
        seed: determines the words.

    Returns:
        The changed specification and the words.
    """
    changed = deepcopy(dict(spec))
    state = changed["state"]
    others = [entity["id"] for entity in changed.get("entities", ()) if entity["id"] != pov][:_MOST]
    places: dict[str, Any] = {"hidden": state.setdefault("hidden", {})}
    if others:
        private = state.setdefault("private", {})
        places |= {name: private.setdefault(name, {}) for name in others}
    words = {}
    for place, slot in places.items():
        if isinstance(slot, dict):
            slot[KEY] = words[place] = canary(seed, place)
    return changed, tuple(words.values())
