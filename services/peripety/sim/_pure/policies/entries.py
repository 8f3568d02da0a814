"""Entries of matchers, as sets: the cost of a lookup does not depend on their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.policies.values import READERS, read_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Among", "Entries", "Lists"]


class Entries:
    """Entries of one kind.

    Args:
        kind: the kind.
        entries: the entries as written, without references to lists.

    Raises:
        CoreError: an entry is invalid.
    """

    def __init__(self, kind: str, entries: Iterable[str]) -> None:
        self._kind = kind
        self._everything = False
        # Texts that equal a value, and texts that are ancestors of one: paths and hosts.
        self._whole: set[str] = set()
        self._above: set[str] = set()
        for entry in entries:
            self._add(entry)
        self._lengths = sorted({len(text) for text in self._above})

    def match(self, value: str) -> bool:
        """Return True if a normalized value matches an entry."""
        if self._everything or value in self._whole:
            return True
        if self._kind == "path":
            return self._hold_path(value)
        if self._kind == "email":
            host = value[value.index("@") :]
            return host in self._whole or self._hold_host(host[1:])
        return self._hold_host(value)

    def _add(self, entry: str) -> None:
        if self._kind == "path":
            self._above.add(READERS["path"](entry))
        elif self._kind == "domain":
            self._add_hosts("", entry, "BAD_DOMAIN")
        elif self._kind == "email" and entry.startswith("*@"):
            # With the @, a host of addresses differs from an address, and from a host of the kind domain.
            self._add_hosts("@", entry.removeprefix("*@"), "BAD_EMAIL")
        else:
            self._whole.add(READERS[self._kind](entry))

    def _add_hosts(self, before: str, pattern: str, code: str) -> None:
        if pattern == "*":
            self._everything = True
        elif pattern.startswith("*."):
            self._above.add(read_host(pattern.removeprefix("*."), code, bracketed=False))
        else:
            self._whole.add(before + read_host(pattern, code, bracketed=not before))

    def _hold_path(self, value: str) -> bool:
        """Return True if an entry is the path or an ancestor of it."""
        return any(
            value[length : length + 1] in {"", "/"} and value[:length] in self._above
            for length in self._lengths
            if length <= len(value)
        )

    def _hold_host(self, value: str) -> bool:
        """Return True if an entry is a parent domain of the host."""
        return any(
            value[-length - 1] == "." and value[-length:] in self._above
            for length in self._lengths
            if length < len(value)
        )


@dataclass(frozen=True, slots=True)
class Among:
    """Entries of a matcher: its own, and those of lists."""

    parts: tuple[Entries, ...]

    def match(self, value: str) -> bool:
        """Return True if a normalized value matches an entry."""
        return any(part.match(value) for part in self.parts)


class Lists:
    """Lists of a policy, each parsed once and shared by all references.

    Args:
        lists: the lists of the document.
    """

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self._named = {name: [*_names(given["values"])] for name, given in lists.items()}
        self._entries = {
            name: Entries(given["kind"], _written(given["values"])) for name, given in lists.items()
        }

    def among(self, kind: str, among: Iterable[str]) -> Among:
        """Expand the references to lists in a matcher's entries."""
        entries = [*among]
        pending = [*_names(entries)]
        reached: dict[str, Entries] = {}
        while pending:
            name = pending.pop()
            if name not in reached:
                reached[name] = self._entries[name]
                pending.extend(self._named[name])
        return Among((Entries(kind, _written(entries)), *reached.values()))


def _names(entries: Iterable[str]) -> Iterable[str]:
    return (entry[1:] for entry in entries if entry.startswith("@"))


def _written(entries: Iterable[str]) -> Iterable[str]:
    return (entry for entry in entries if not entry.startswith("@"))
