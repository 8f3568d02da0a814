"""Tokens as the simulator counts them: four bytes of UTF-8 each, whatever the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BYTES_PER_TOKEN", "count", "pieces", "shares"]

BYTES_PER_TOKEN = 4


def count(text: str) -> int:
    """How many tokens a text is; `len(pieces(text))`, without cutting it."""
    return -(-_size(text) // BYTES_PER_TOKEN)


def pieces(text: str) -> tuple[str, ...]:
    """The tokens of a text: joined they are the text, and no character is cut.

    A token ends with the last character that ends within its four bytes; what it leaves, the next one has.
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
    """How many tokens each part of a text brings; together these are as many as the whole text has."""
    size = 0
    for part in parts:
        before = size
        size += _size(part)
        yield -(-size // BYTES_PER_TOKEN) + (-before // BYTES_PER_TOKEN)


def _size(text: str) -> int:
    # Lone surrogates can be written in JSON, and must not stop a count.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
