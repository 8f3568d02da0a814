"""The kinds of values that matchers compare: how each is read, and what matches an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.sim._core import CoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENTRIES", "READERS"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_PORT = re.compile(r":[0-9]{1,5}\Z")
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_BRACKETED = re.compile(r"\[[0-9a-f:.]{2,}\]")
_LOCAL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_LONGEST_HOST = 253


def _path(text: str) -> str:
    """A path in its one spelling: `/a/b`, or `` for the root."""
    if not text.startswith("/") or "\0" in text:
        raise CoreError("BAD_PATH", "a path has to be absolute: to begin with / and have no U+0000")
    kept: list[str] = []
    for segment in text.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return "".join(f"/{segment}" for segment in kept)


def _host(text: str, code: str, *, bracketed: bool) -> str:
    host = text.lower().removesuffix(".")
    if bracketed and _BRACKETED.fullmatch(host):
        return host
    if len(host) > _LONGEST_HOST or not _LABELS.fullmatch(host):
        raise CoreError(code, "a host has to be a name in ASCII, of labels with dots between them")
    return host


def _domain(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise CoreError("BAD_DOMAIN", "a URL or host has to be in ASCII, without white space and backslashes")
    scheme, separator, rest = text.partition("://")
    if separator:
        if not _SCHEME.fullmatch(scheme):
            raise CoreError("BAD_DOMAIN", "a URL has to begin with a scheme, such as https://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    else:
        authority = text
    return _host(_PORT.sub("", authority), "BAD_DOMAIN", bracketed=True)


def _email(text: str) -> str:
    local, _, host = text.partition("@")
    if not _LOCAL.fullmatch(local.lower()) or not text.isascii():
        raise CoreError("BAD_EMAIL", "an address has to be one name@host, in ASCII")
    return f"{local.lower()}@{_host(host, 'BAD_EMAIL', bracketed=False)}"


READERS: dict[str, Callable[[str], str]] = {
    "path": _path,
    "domain": _domain,
    "email": _email,
    "identifier": str,
}
"""For each kind, the function that reads a value; it raises CoreError."""


def _below_path(entry: str) -> Callable[[str], bool]:
    whole, below = _path(entry), f"{_path(entry)}/"
    return lambda value: value == whole or value.startswith(below)


def _among_hosts(pattern: str, code: str) -> Callable[[str], bool]:
    if pattern == "*":
        return lambda _value: True
    if pattern.startswith("*."):
        ending = f".{_host(pattern[2:], code, bracketed=False)}"
        return lambda value: value.endswith(ending)
    host = _host(pattern, code, bracketed=code == "BAD_DOMAIN")
    return lambda value: value == host


def _domain_entry(entry: str) -> Callable[[str], bool]:
    return _among_hosts(entry, "BAD_DOMAIN")


def _email_entry(entry: str) -> Callable[[str], bool]:
    if entry.startswith("*@"):
        among = _among_hosts(entry[2:], "BAD_EMAIL")
        return lambda value: among(value.partition("@")[2])
    address = _email(entry)
    return lambda value: value == address


def _identifier_entry(entry: str) -> Callable[[str], bool]:
    return lambda value: value == entry


ENTRIES: dict[str, Callable[[str], Callable[[str], bool]]] = {
    "path": _below_path,
    "domain": _domain_entry,
    "email": _email_entry,
    "identifier": _identifier_entry,
}
"""For each kind, the function that makes of an entry what tells whether a value that was read matches it."""
