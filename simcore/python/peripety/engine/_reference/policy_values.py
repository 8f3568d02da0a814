"""Values of matchers in policies: kinds with their normal forms, and sets of entries.

The cost of a lookup in a set does not depend on the number of entries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from peripety.engine.backend_protocol import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_PORT = re.compile(r":[0-9]{1,5}\Z")
_LABELS = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER_LAST = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
_BRACKETED = re.compile(r"\[([0-9a-f:.]*)\]")
_LOCAL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_MAX_HOST = 253


def _normalize_path(text: str) -> str:
    """Normalize a path: `/a/b`, or `` for the root."""
    if not text.startswith("/") or "\0" in text:
        raise EngineError("BAD_PATH", "a path has to be absolute: to begin with / and have no U+0000")
    kept: list[str] = []
    for segment in text.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return "".join(f"/{segment}" for segment in kept)


def normalize_host(text: str, code: str, *, bracketed: bool) -> str:
    """Normalize a host.

    Args:
        text: the host.
        code: code of the error for an invalid host.
        bracketed: True if an IPv6 address in brackets is allowed.

    Raises:
        EngineError: the host is invalid.
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
    if not text.isascii() or len(host) > _MAX_HOST or not _LABELS.fullmatch(host):
        message = "a host has to be a name in ASCII, of labels with dots between them, or a plain IP address"
        raise EngineError(code, message)
    return host


def _normalize_domain(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise EngineError(
            "BAD_DOMAIN",
            "a URL or host has to be in ASCII, without white space and backslashes",
        )
    scheme, separator, rest = text.partition("://")
    if separator:
        if not _SCHEME.fullmatch(scheme):
            raise EngineError("BAD_DOMAIN", "a URL has to begin with a scheme, such as https://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    else:
        authority = text
    return normalize_host(_PORT.sub("", authority), "BAD_DOMAIN", bracketed=True)


def _normalize_email(text: str) -> str:
    local, _, host = text.partition("@")
    if not _LOCAL.fullmatch(local.lower()) or not text.isascii():
        raise EngineError("BAD_EMAIL", "an address has to be one name@host, in ASCII")
    return f"{local.lower()}@{normalize_host(host, 'BAD_EMAIL', bracketed=False)}"


NORMALIZERS: dict[str, Callable[[str], str]] = {
    "path": _normalize_path,
    "domain": _normalize_domain,
    "email": _normalize_email,
    "identifier": str,
}
"""For each kind, the function that normalizes a value; it raises EngineError."""


class EntrySet:
    """Entries of one kind.

    Args:
        kind: the kind.
        entries: the entries as written, without references to lists.

    Raises:
        EngineError: an entry is invalid.
    """

    def __init__(self, kind: str, entries: Iterable[str]) -> None:
        self._kind = kind
        self._matches_all = False
        # Texts that equal a value, and texts that are ancestors of one: paths and hosts.
        self._exact: set[str] = set()
        self._ancestors: set[str] = set()
        for entry in entries:
            self._add(entry)
        self._lengths = sorted({len(text) for text in self._ancestors})

    def match(self, value: str) -> bool:
        """Return True if a normalized value matches an entry."""
        if self._matches_all or value in self._exact:
            return True
        if self._kind == "path":
            return self._matches_path(value)
        if self._kind == "email":
            host = value[value.index("@") :]
            return host in self._exact or self._matches_host(host[1:])
        return self._matches_host(value)

    def _add(self, entry: str) -> None:
        if self._kind == "path":
            self._ancestors.add(NORMALIZERS["path"](entry))
        elif self._kind == "domain":
            self._add_hosts("", entry, "BAD_DOMAIN")
        elif self._kind == "email" and entry.startswith("*@"):
            # With the @, a host of addresses differs from an address, and from a host of the kind domain.
            self._add_hosts("@", entry.removeprefix("*@"), "BAD_EMAIL")
        else:
            self._exact.add(NORMALIZERS[self._kind](entry))

    def _add_hosts(self, before: str, pattern: str, code: str) -> None:
        if pattern == "*":
            self._matches_all = True
        elif pattern.startswith("*."):
            self._ancestors.add(normalize_host(pattern.removeprefix("*."), code, bracketed=False))
        else:
            self._exact.add(before + normalize_host(pattern, code, bracketed=not before))

    def _matches_path(self, value: str) -> bool:
        """Return True if an entry is the path or an ancestor of it."""
        return any(
            value[length : length + 1] in {"", "/"} and value[:length] in self._ancestors
            for length in self._lengths
            if length <= len(value)
        )

    def _matches_host(self, value: str) -> bool:
        """Return True if an entry is a parent domain of the host."""
        return any(
            value[-length - 1] == "." and value[-length:] in self._ancestors
            for length in self._lengths
            if length < len(value)
        )


@dataclass(frozen=True, slots=True)
class MatcherValues:
    """Entries of a matcher: its own, and those of lists."""

    parts: tuple[EntrySet, ...]

    def match(self, value: str) -> bool:
        """Return True if a normalized value matches an entry."""
        return any(part.match(value) for part in self.parts)


class ReferenceLists:
    """Lists of a policy, each parsed once and shared by all references.

    Args:
        lists: the lists of the document.
    """

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self._named = {name: [*_iter_references(given["values"])] for name, given in lists.items()}
        self._entries = {
            name: EntrySet(given["kind"], _iter_literals(given["values"])) for name, given in lists.items()
        }

    def expand(self, kind: str, among: Iterable[str]) -> MatcherValues:
        """Expand the references to lists in a matcher's entries."""
        entries = [*among]
        pending = [*_iter_references(entries)]
        reached: dict[str, EntrySet] = {}
        while pending:
            name = pending.pop()
            if name not in reached:
                reached[name] = self._entries[name]
                pending.extend(self._named[name])
        return MatcherValues((EntrySet(kind, _iter_literals(entries)), *reached.values()))


def _iter_references(entries: Iterable[str]) -> Iterable[str]:
    return (entry[1:] for entry in entries if entry.startswith("@"))


def _iter_literals(entries: Iterable[str]) -> Iterable[str]:
    return (entry for entry in entries if not entry.startswith("@"))
