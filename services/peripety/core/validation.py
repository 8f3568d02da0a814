"""Validation of request fields, page sizes and page tokens, with the same errors in every service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from peripety.errors import field_error, require_field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Canonical form of a UUID. Idempotency compares request ids as text, so each id needs exactly one form."""

_UUID_IN_ANY_CASE = re.compile(UUID_PATTERN.pattern, re.IGNORECASE)


def normalize_uuid(text: str) -> str:
    """Return a UUID in its canonical form, lower-case; return any other text unchanged."""
    return text.lower() if _UUID_IN_ANY_CASE.fullmatch(text) else text


def check_request_id(request_id: str) -> None:
    """Raise unless a request id is a UUID in its canonical form, as `normalize_uuid` returns it.

    Raises:
        InvalidArgumentError: the id is not a UUID.
    """
    require_field(
        UUID_PATTERN.fullmatch(request_id),
        "request_id",
        "must be a UUID with hyphens; make a new one for each request",
    )


_MAX_ITEM_ID_BYTES = 256


def check_item_id(item_id: str) -> None:
    """Raise InvalidArgumentError if the id of an item of a batch is empty or too long."""
    size = len(item_id.encode())
    require_field(
        0 < size <= _MAX_ITEM_ID_BYTES,
        ".item_id",
        f"must have 1 to {_MAX_ITEM_ID_BYTES} bytes",
    )


def require_unique(names: Sequence[str], field: str, name: str) -> None:
    """Raise an error if two items have the same name; empty names are not compared.

    Args:
        names: the names of all items.
        field: path of the list in the request.
        name: the field of an item with the name.

    Raises:
        InvalidArgumentError: two names are equal.
    """
    first: dict[str, int] = {}
    for index, value in enumerate(names):
        before = first.setdefault(value, index) if value else index
        reason = f"equals that of {field}[{before}]; choose a unique one"
        require_field(before == index, f"{field}[{index}].{name}", reason)


_DEFAULT_SIZE = 50
_MAX_SIZE = 1_000
# The number fits a 64-bit database column; the name is a UUID, if present.
_TOKEN = re.compile(r"(?P<number>[0-7][0-9a-f]{15})(?P<name>[0-9a-f-]{36})?")
T = TypeVar("T")


class PagePosition(NamedTuple):
    """A position in a list: a sort key, and a UUID to break ties."""

    number: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list with the token of the next page, which is empty on the last page."""

    items: tuple[T, ...]
    next_page_token: str


def resolve_page_size(requested: int) -> int:
    """Return the number of items per page.

    Raises:
        InvalidArgumentError: the size is negative.
    """
    if requested < 0:
        raise field_error(".page_size", "must not be negative; 0 means the default")
    return min(requested or _DEFAULT_SIZE, _MAX_SIZE)


def decode_page_token(token: str, *, has_name: bool = False) -> PagePosition | None:
    """Decode a page token to the position after which the page starts; return None for the empty token.

    Args:
        token: token from the previous page.
        has_name: True if positions of the list have names.

    Raises:
        InvalidArgumentError: the token is not a token of this list.
    """
    if not token:
        return None
    match = _TOKEN.fullmatch(token)
    if match is None or (match["name"] is not None) != has_name:
        raise field_error(
            ".page_token",
            "is not a token of this list; send the one of the previous page, or none",
        )
    return PagePosition(int(match["number"], 16), match["name"] or "")


def make_page(items: Sequence[T], size: int, position: Callable[[T], PagePosition]) -> Page[T]:
    """Make a page from the first items of a list.

    Args:
        items: the items; more than fit if there is a next page.
        size: number of items on the page, at least 1.
        position: returns the position of an item.
    """
    fitting = tuple(items[:size])
    return Page(fitting, _encode_token(position(fitting[-1])) if len(items) > size else "")


def _encode_token(position: PagePosition) -> str:
    return f"{position.number:016x}{position.name}"
