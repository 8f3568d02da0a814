"""Normalization of arbitrary text to names of quantities, actions and persons."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.authoring.reading.scripts import cleaned, clipped

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME_LIMIT", "TERM_LIMIT", "fit", "fresh"]

TERM_LIMIT = 32
"""The maximum length of the name of a thing."""

NAME_LIMIT = 64
"""The maximum length of the name of a rule or scenario."""

# Characters with a meaning in paths, templates and identifiers.
_UNFIT = re.compile(r"[\"\\{}\[\]<>$%_\s]+")
_EDGES = " .,:;!?-"


def fit(text: str, limit: int) -> str:
    """Return the text as a name: one line, without special characters; empty if nothing remains."""
    name = clipped(" ".join(_UNFIT.sub(" ", cleaned(text)).split()), limit).strip(_EDGES)
    return name[:1].upper() + name[1:] if any(char.isalnum() for char in name) or not name.isascii() else ""


def fresh(name: str, taken: Iterable[str]) -> str:
    """Return the name, with the first number that makes it unique among the used names, ignoring case."""
    used = {one.casefold() for one in taken}
    number = 1
    unlike = name or "1"
    while unlike.casefold() in used:
        number += 1
        unlike = f"{name} {number}".strip()
    return unlike
