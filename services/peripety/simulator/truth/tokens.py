"""Token counting of the simulator: four bytes of UTF-8 per token, for any model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BYTES_PER_TOKEN", "count", "pieces", "shares"]

BYTES_PER_TOKEN = 4


def count(text: str) -> int:
    """Return the number of tokens of a text; equal to `len(pieces(text))` without splitting it."""
    return -(-_size(text) // BYTES_PER_TOKEN)


def pieces(text: str) -> tuple[str, ...]:
    """Split a text into tokens. Joined, they are the text, and no character is split.

    A token ends with the last character that ends within its four bytes; the rest of the bytes belongs to the
    next token.
    """
    if text.isascii():
        return tuple(text[at : at + BYTES_PER_TOKEN] for at in range(0, len(text), BYTES_PER_TOKEN))
    found: list[str] = []
    begin = size = 0
    for at, character in enumerate(text):
        size += _size(character)
        if size > BYTES_PER_TOKEN * (len(found) + 1):
            found.append(text[begin:at])
            begin = at
    return (*found, text[begin:])


def shares(parts: Iterable[str]) -> Iterator[int]:
    """Yield the number of tokens that each part of a text adds.

    The sum is the count of the whole text.
    """
    size = 0
    for part in parts:
        before = size
        size += _size(part)
        yield -(-size // BYTES_PER_TOKEN) + (-before // BYTES_PER_TOKEN)


def _size(text: str) -> int:
    # JSON can contain lone surrogates, which must be countable.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
