"""Cleaning of names from a model: short, valid and unique."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.names import TERM_LIMIT, fit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["NAME", "Names", "name_of"]

NAME = {
    "type": "string",
    # Without digits and dots a small model writes words; otherwise it writes dates and addresses.
    "pattern": rf"^[^0-9\"\\{{}}\[\]<>$%_/:.,]{{1,{TERM_LIMIT}}}$",
    "maxLength": TERM_LIMIT,
}
"""The JSON Schema of a name."""


def name_of(value: Any, limit: int = TERM_LIMIT) -> str:
    """Return a value as a name; empty if it is not usable."""
    text = value if isinstance(value, str) and "://" not in value else ""
    if len(text) >= limit:
        # The limit may have truncated the last word.
        text = text.rpartition(" ")[0] or text
    name = fit(text, limit)
    is_word = any(char.isalpha() for char in name) and (len(name) > 1 or not name.isascii())
    return name if is_word else ""


class Names:
    """Collector of unique names.

    The first argument lists the names in use.

    Args:
        empty: words, in lower case, that are not a name by themselves.
    """

    def __init__(self, taken: Iterable[str], empty: Collection[str]) -> None:
        self._taken = {name.casefold() for name in taken}
        self._empty = frozenset(empty)

    def of(self, values: Any, *, at_most: int) -> tuple[str, ...]:
        """Return the new names among values."""
        names = map(name_of, values) if isinstance(values, list) else ()
        return tuple(
            islice((name for name in names if self._says_something(name) and self.take(name)), at_most)
        )

    def take(self, name: str) -> bool:
        """Reserve a name; return True if it was free."""
        folded = name.casefold()
        if folded in self._taken:
            return False
        self._taken.add(folded)
        return True

    def _says_something(self, name: str) -> bool:
        return not self._empty.issuperset(name.casefold().split())
