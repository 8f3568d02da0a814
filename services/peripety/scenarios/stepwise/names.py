"""Names that a model gave, as a scenario can hold them: short, clean, and no two alike."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.names import TERM_LIMIT, fit

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NAME", "Names", "name_of"]

NAME = {
    "type": "string",
    # Without digits and dots a small model writes words; left free, it writes dates and addresses.
    "pattern": rf"^[^0-9\"\\{{}}\[\]<>$%_/:.,]{{1,{TERM_LIMIT}}}$",
    "maxLength": TERM_LIMIT,
}
"""The schema of a name."""


def name_of(value: Any, limit: int = TERM_LIMIT) -> str:
    """A value as a name; empty where it is none."""
    text = value if isinstance(value, str) and "://" not in value else ""
    if len(text) >= limit:
        # The limit may have cut the last word.
        text = text.rpartition(" ")[0] or text
    name = fit(text, limit)
    is_word = any(char.isalpha() for char in name) and (len(name) > 1 or not name.isascii())
    return name if is_word else ""


class Names:
    """Hands out names, each of them once.

    Args:
        spare: names to use where the model's do not suffice.
        taken: what is nobody's name.
    """

    def __init__(self, spare: Iterable[str] = (), taken: Iterable[str] = ()) -> None:
        self._spare = iter(spare)
        self._taken = {name.casefold() for name in taken}

    def of(self, values: Any, *, at_most: int, at_least: int = 0) -> tuple[str, ...]:
        """The names among values that are nobody's yet; spare ones in place of those that are missing."""
        said = map(name_of, values) if isinstance(values, list) else ()
        kept = tuple(islice((name for name in said if name and self._is_new(name)), at_most))
        return (*kept, *islice(filter(self._is_new, self._spare), max(at_least - len(kept), 0)))

    def _is_new(self, name: str) -> bool:
        folded = name.casefold()
        if folded in self._taken:
            return False
        self._taken.add(folded)
        return True
