"""Names that a model gave, as a scenario can hold them: short, clean, and no two alike."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.names import TERM_LIMIT, fit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

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
    """Takes names, each of them once.

    Args:
        taken: what is no name any more.
        empty: words, in lower case, that are no name by themselves.
    """

    def __init__(self, taken: Iterable[str], empty: Collection[str]) -> None:
        self._taken = {name.casefold() for name in taken}
        self._empty = frozenset(empty)

    def of(self, values: Any, *, at_most: int) -> tuple[str, ...]:
        """The names among values that were not taken yet."""
        names = map(name_of, values) if isinstance(values, list) else ()
        return tuple(
            islice((name for name in names if self._says_something(name) and self.take(name)), at_most)
        )

    def take(self, name: str) -> bool:
        """Take a name; whether it was still free."""
        folded = name.casefold()
        if folded in self._taken:
            return False
        self._taken.add(folded)
        return True

    def _says_something(self, name: str) -> bool:
        return not self._empty.issuperset(name.casefold().split())
