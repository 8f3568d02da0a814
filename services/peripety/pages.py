"""Pages of lists: how long they are, and the token that asks for the next one."""

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
# The number is one that a database column of 64 bits holds; the name is a UUID, where there is one.
_TOKEN = re.compile(r"(?P<number>[0-7][0-9a-f]{15})(?P<name>[0-9a-f-]{36})?")
T = TypeVar("T")


class Position(NamedTuple):
    """A place in a list: a number that orders it, and a UUID where numbers may be equal."""

    number: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list, and the token of the next page; empty on the last one."""

    items: tuple[T, ...]
    next_page_token: str


def page_size(asked: int) -> int:
    """How many items a page has.

    Raises:
        InvalidArgumentError: the size is negative.
    """
    if asked < 0:
        raise refuse(".page_size", "must not be negative; 0 leaves it to the server")
    return min(asked or _DEFAULT_SIZE, _MAX_SIZE)


def position_in(token: str, *, named: bool = False) -> Position | None:
    """The position after which a token goes on; None for the empty one, which asks for the first page.

    Args:
        token: what came with the page before.
        named: whether positions of the list have names.

    Raises:
        InvalidArgumentError: the token is not one of this list's.
    """
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    if match is None or (match["name"] is not None) != named:
        raise refuse(".page_token", "is not a token of this list; send the one of the page before, or none")
    return Position(int(match["number"], 16), match["name"] or "")


def page_of(items: Sequence[T], size: int, position: Callable[[T], Position]) -> Page[T]:
    """The page that starts a list.

    Args:
        items: the items, more than fit if there is a next page.
        size: how many fit, at least 1.
        position: says where an item stands.
    """
    fitting = tuple(items[:size])
    return Page(fitting, _token(position(fitting[-1])) if len(items) > size else "")


def _token(position: Position) -> str:
    return f"{position.number:016x}{position.name}"
