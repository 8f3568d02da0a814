"""Identifiers from names: a slug for names with a Latin transliteration, else a numbered identifier."""

from __future__ import annotations

import re
import unicodedata
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["PLAYER", "identifiers", "spelled"]

PLAYER = "player"
"""The id of the player's entity."""

_LIMIT = 40
_BETWEEN = re.compile(r"[^a-z0-9]+")


def spelled(name: str) -> str:
    """Return the name as an ASCII slug, cut between words; empty if letters would be lost."""
    bare = "".join(
        char for char in unicodedata.normalize("NFKD", name) if not unicodedata.category(char).startswith("M")
    )
    if any(char.isalnum() and not char.isascii() for char in bare):
        return ""
    words = _BETWEEN.sub("_", bare.lower()).strip("_")
    return words if len(words) <= _LIMIT else words[: _LIMIT + 1].rpartition("_")[0] or words[:_LIMIT]


def identifiers(prefix: str, names: Iterable[str], taken: Iterable[str] = ()) -> Mapping[str, str]:
    """Return a unique identifier for each name; the prefix is for those without a letter at the start."""
    used = set(taken)
    ids: dict[str, str] = {}
    for place, name in enumerate(names):
        word = spelled(name)
        if not word[:1].isalpha():
            word = f"{prefix}{word or place}"
        ids[name] = next(one for one in chain([word], _numbered(word)) if one not in used)
        used.add(ids[name])
    return ids


def _numbered(word: str) -> Iterator[str]:
    return (f"{word}_{number}" for number in count(2))
