"""Pages of lists: how long they are, and the token that asks for the next one."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from peripety.sessions.checks import refuse

__all__ = ["Page", "page_of", "page_size", "position_in", "token_of"]

_DEFAULT_SIZE = 50
_MAX_SIZE = 1_000
T = TypeVar("T")


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


def token_of(*position: Any) -> str:
    """The token of what comes after a position in a list."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def position_in(token: str, *kinds: type) -> tuple[Any, ...] | None:
    """The position that a token stands for; None for the empty one, which asks for the first page.

    Args:
        token: what came with the page before.
        kinds: the types of the parts of a position.

    Raises:
        InvalidArgumentError: the token is not one of this list's.
    """
    if not token:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(token.encode()))
    except ValueError:
        position = None
    if not isinstance(position, list) or tuple(map(type, position)) != kinds:
        raise refuse(".page_token", "is not a token of this list; send the one of the page before, or none")
    return tuple(position)


def page_of(items: list[T], size: int, last: Any) -> Page[T]:
    """The page that starts a list of at most `size` + 1 items.

    Args:
        items: the items, one more than fit if there is a next page.
        size: how many fit.
        last: says the position of an item.
    """
    fitting = tuple(items[:size])
    return Page(fitting, token_of(*last(fitting[-1])) if len(items) > size else "")
