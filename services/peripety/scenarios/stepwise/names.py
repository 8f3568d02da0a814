"""Names that a model gave, as a scenario can hold them: short, clean, and no two alike."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.scripts import cleaned, clipped

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME", "TITLE_LIMIT", "Names", "fit"]

_NAME_LIMIT = 32
TITLE_LIMIT = 64
"""The longest title, in characters."""

NAME = {
    "type": "string",
    # Without digits and dots a small model writes words; left free, it writes dates and addresses.
    "pattern": rf"^[^0-9\"\\{{}}\[\]<>$%_/:.,]{{1,{_NAME_LIMIT}}}$",
    "maxLength": _NAME_LIMIT,
}
"""The schema of a name."""

# What paths, templates and identifiers give a meaning to.
_UNFIT = re.compile(r"[\"\\{}\[\]<>$%_\s]+")
_EDGES = " .,:;!?-"


def fit(text: Any, limit: int) -> str:
    """A text as a name can hold it; empty when it is none."""
    if not isinstance(text, str):
        return ""
    words = _UNFIT.sub(" ", cleaned(text)).split()
    if len(text) >= limit and len(words) > 1:
        # The limit may have cut the last one.
        words.pop()
    name = clipped(" ".join(words), limit).strip(_EDGES)
    is_name = any(char.isalpha() for char in name) and (len(name) > 1 or not name.isascii())
    return name[0].upper() + name[1:] if is_name and "://" not in name else ""


class Names:
    """Hands out names, each of them once.

    Args:
        spare: names to use where the model's do not suffice.
        taken: what is nobody's name.
    """

    def __init__(self, spare: Iterable[str] = (), taken: Iterable[str] = ()) -> None:
        self._spare = iter(spare)
        self._taken = {name.casefold() for name in taken}

    def of(self, values: Any, *, at_least: int, at_most: int) -> tuple[str, ...]:
        """The names among values that are nobody's yet; spare ones in place of those that are missing."""
        said = (fit(value, _NAME_LIMIT) for value in values) if isinstance(values, list) else ()
        kept = tuple(islice((name for name in said if name and self._is_new(name)), at_most))
        return (*kept, *islice(filter(self._is_new, self._spare), max(at_least - len(kept), 0)))

    def _is_new(self, name: str) -> bool:
        folded = name.casefold()
        if folded in self._taken:
            return False
        self._taken.add(folded)
        return True
