"""How names that nothing has are told."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["unknown"]

_MAX_LISTED = 24
_MAX_COMPARED = 1000


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name that nothing has, with the one that may be meant.

    Args:
        what: what it should name, such as `list`.
        name: the name.
        known: the names that there are.
    """
    names = sorted(known)
    close = get_close_matches(name[:200], names[:_MAX_COMPARED], n=1)
    if close:
        hint = f"did you mean '{close[0]}'?"
    elif names:
        hint = f"there are {', '.join(names[:_MAX_LISTED])}" + (" …" if len(names) > _MAX_LISTED else "")
    else:
        hint = "there are none"
    return f"there is no {what} '{name[:80]}'; {hint}"
