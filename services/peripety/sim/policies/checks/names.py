"""Messages about unknown names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["unknown"]

_MAX_LISTED = 24
_MAX_COMPARED = 1000


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return a message about an unknown name, with the closest known one.

    Args:
        what: kind of the name, such as `list`.
        name: the unknown name.
        known: the existing names.
    """
    names = sorted(known)
    close = get_close_matches(name[:200], names[:_MAX_COMPARED], n=1)
    if close:
        hint = f"did you mean '{close[0]}'?"
    elif names:
        hint = f"known: {', '.join(names[:_MAX_LISTED])}" + (" …" if len(names) > _MAX_LISTED else "")
    else:
        hint = "the policy defines none"
    return f"unknown {what} '{name[:80]}'; {hint}"
