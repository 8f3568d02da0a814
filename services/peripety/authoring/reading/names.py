"""Words from anywhere as names: of quantities, actions, people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.authoring.reading.scripts import cleaned, clipped

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME_LIMIT", "TERM_LIMIT", "fit", "fresh"]

TERM_LIMIT = 32
"""Characters of a word or two that name a thing."""

NAME_LIMIT = 64
"""Characters of what names a rule, or a whole scenario."""

# What paths, templates and identifiers give a meaning to.
_UNFIT = re.compile(r"[\"\\{}\[\]<>$%_\s]+")
_EDGES = " .,:;!?-"


def fit(text: str, limit: int) -> str:
    """A text as a name can hold it: on one line, nothing in it that machines read; empty if none is left."""
    name = clipped(" ".join(_UNFIT.sub(" ", cleaned(text)).split()), limit).strip(_EDGES)
    return name[:1].upper() + name[1:] if any(char.isalnum() for char in name) or not name.isascii() else ""


def fresh(name: str, taken: Iterable[str]) -> str:
    """The name, or the name with the first number that makes it unlike all that are taken, in any case."""
    used = {one.casefold() for one in taken}
    number = 1
    unlike = name or "1"
    while unlike.casefold() in used:
        number += 1
        unlike = f"{name} {number}".strip()
    return unlike
