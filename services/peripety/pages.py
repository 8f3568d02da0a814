"""Pagination: page sizes and page tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from peripety.requests import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Page", "Position", "page_of", "page_size", "position_in"]

_DEFAULT_SIZE = 50
_MAX_SIZE = 1_000
# The number fits a 64-bit database column; the name is a UUID, if present.
_TOKEN = re.compile(r"(?P<number>[0-7][0-9a-f]{15})(?P<name>[0-9a-f-]{36})?")
T = TypeVar("T")


class Position(NamedTuple):
    """A position in a list: a sort key, and a UUID to break ties."""

    number: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list with the token of the next page, which is empty on the last page."""

    items: tuple[T, ...]
    next_page_token: str


def page_size(asked: int) -> int:
    """Return the number of items per page.

    Raises:
        InvalidArgumentError: the size is negative.
    """
    if asked < 0:
        raise refuse(".page_size", "must not be negative; 0 means the default")
    return min(asked or _DEFAULT_SIZE, _MAX_SIZE)


def position_in(token: str, *, named: bool = False) -> Position | None:
    """Decode a page token to the position after which the page starts; return None for the empty token.

    Args:
        token: token from the previous page.
        named: True if positions of the list have names.

    Raises:
        InvalidArgumentError: the token is not a token of this list.
    """
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    if match is None or (match["name"] is not None) != named:
        raise refuse(".page_token", "is not a token of this list; send the one of the previous page, or none")
    return Position(int(match["number"], 16), match["name"] or "")


def page_of(items: Sequence[T], size: int, position: Callable[[T], Position]) -> Page[T]:
    """Make a page from the first items of a list.

    Args:
        items: the items; more than fit if there is a next page.
        size: number of items on the page, at least 1.
        position: returns the position of an item.
    """
    fitting = tuple(items[:size])
    return Page(fitting, _token(position(fitting[-1])) if len(items) > size else "")


def _token(position: Position) -> str:
    return f"{position.number:016x}{position.name}"
