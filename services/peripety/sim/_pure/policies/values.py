"""Kinds of values that matchers compare, with their normal forms."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING

from peripety.sim._core import CoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READERS", "read_host"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_PORT = re.compile(r":[0-9]{1,5}\Z")
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER_LAST = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
_BRACKETED = re.compile(r"\[([0-9a-f:.]*)\]")
_LOCAL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_LONGEST_HOST = 253


def _path(text: str) -> str:
    """Normalize a path: `/a/b`, or `` for the root."""
    if not text.startswith("/") or "\0" in text:
        raise CoreError("BAD_PATH", "a path has to be absolute: to begin with / and have no U+0000")
    kept: list[str] = []
    for segment in text.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return "".join(f"/{segment}" for segment in kept)


def read_host(text: str, code: str, *, bracketed: bool) -> str:
    """Normalize a host.

    Args:
        text: the host.
        code: code of the error for an invalid host.
        bracketed: True if an IPv6 address in brackets is allowed.

    Raises:
        CoreError: the host is invalid.
    """
    host = text.lower().removesuffix(".")
    try:
        if bracketed and (address := _BRACKETED.fullmatch(host)):
            six = IPv6Address(address[1])
            return str(six.ipv4_mapped) if six.ipv4_mapped else f"[{six.exploded}]"
        if _NUMBER_LAST.fullmatch(host):
            return str(IPv4Address(host))
    except AddressValueError:
        host = ""
    if not text.isascii() or len(host) > _LONGEST_HOST or not _LABELS.fullmatch(host):
        message = "a host has to be a name in ASCII, of labels with dots between them, or a plain IP address"
        raise CoreError(code, message)
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
    return read_host(_PORT.sub("", authority), "BAD_DOMAIN", bracketed=True)


def _email(text: str) -> str:
    local, _, host = text.partition("@")
    if not _LOCAL.fullmatch(local.lower()) or not text.isascii():
        raise CoreError("BAD_EMAIL", "an address has to be one name@host, in ASCII")
    return f"{local.lower()}@{read_host(host, 'BAD_EMAIL', bracketed=False)}"


READERS: dict[str, Callable[[str], str]] = {
    "path": _path,
    "domain": _domain,
    "email": _email,
    "identifier": str,
}
"""For each kind, the function that normalizes a value; it raises CoreError."""
