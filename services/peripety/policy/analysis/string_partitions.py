"""Partition of strings into the classes that matchers of one kind distinguish, each with examples."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from peripety.engine.policies.policy import normalize_value

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence


NUMERAL = re.compile(r"[-+.0-9eE \t\n\r]*")
"""Pattern that every numeric string matches, though not only those."""

UNREADABLE = -1
"""The class of strings that a kind of matcher cannot read."""

_UNREADABLE_EXAMPLES = {"path": ("relative",), "domain": ("no host", "?"), "email": ("nobody", "?")}
_UNUSED_WORDS = ("other", "another", "z")
_MAX_HOST_LENGTH = 253
_MAX_CLASS_EXAMPLES = 6


def _unused_strings(before: str, after: str, used: Container[str]) -> Iterator[str]:
    """Yield an endless sequence of strings with a word between two others, without those that are used."""
    words = chain(_UNUSED_WORDS, (f"z{number}" for number in count()))
    return (text for text in (f"{before}{word}{after}" for word in words) if text not in used)


@dataclass(slots=True)
class _HostPatterns:
    """Host patterns: the matchers of each exact host, and of all hosts below a host."""

    exact: dict[str, int] = field(default_factory=dict)
    below: dict[str, int] = field(default_factory=dict)
    every: int = 0

    def add(self, pattern: str, bit: int) -> None:
        if pattern == "*":
            self.every |= bit
            return
        host = normalize_value("domain", pattern.removeprefix("*.")) or ""
        table = self.below if pattern.startswith("*.") else self.exact
        table[host] = table.get(host, 0) | bit

    def matchers_of(self, host: str) -> int:
        found = self.every | self.exact.get(host, 0)
        at = host.find(".")
        while at >= 0:
            found |= self.below.get(host[at + 1 :], 0)
            at = host.find(".", at + 1)
        return found

    @property
    def numeric_mask(self) -> int:
        """The matchers that match a host that is, or may be, a number."""
        found = self.every
        for table in (self.exact, self.below):
            for host, bits in table.items():
                found |= bits if NUMERAL.fullmatch(host) else 0
        return found

    def iter_examples(self) -> Iterator[str]:
        """Yield hosts, at least one of each class."""
        known = {**self.exact, **self.below}
        for host in ("example", *known):
            if host in known:
                yield host
            if host in self.below or host not in known:
                below = _unused_strings("", f".{host}", known)
                yield from (name for name in islice(below, 3) if len(name) <= _MAX_HOST_LENGTH)


class StringClasses:
    """The classes of strings that some matchers of one kind distinguish.

    A class is a mask: bit `n` is set if matcher `n` has an entry that matches.

    Args:
        kind: the kind of the matchers.
        matchers: the entries of each matcher, with lists expanded.
    """

    def __init__(self, kind: str, matchers: Sequence[Iterable[str]]) -> None:
        self.kind = kind
        self._exact: dict[str, int] = {}
        self._hosts = _HostPatterns()
        for number, entries in enumerate(matchers):
            for entry in entries:
                self._add_entry(entry, 1 << number)

    def class_of(self, text: str) -> int:
        """Return the class of a string."""
        read = normalize_value(self.kind, text)
        if read is None:
            return UNREADABLE
        match self.kind:
            case "path":
                return self._class_of_path(read)
            case "domain":
                return self._hosts.matchers_of(read)
            case "email":
                return self._exact.get(read, 0) | self._hosts.matchers_of(read.partition("@")[2])
            case _:
                return self._exact.get(read, 0)

    def may_be_numbers(self, outcome: int) -> bool:
        """Return True if strings of a class may also be numeric."""
        return self.kind != "domain" or outcome < 0 or not outcome & ~self._hosts.numeric_mask

    @property
    def mentioned(self) -> set[str]:
        """The strings of the entries, without patterns."""
        return {*self._exact}

    @cached_property
    def examples(self) -> dict[int, tuple[str, ...]]:
        """All classes, each with a few of its strings, the plainest first."""
        found: dict[int, list[str]] = {}
        for text in self._iter_strings():
            texts = found.setdefault(self.class_of(text), [])
            if len(texts) < _MAX_CLASS_EXAMPLES:
                texts.append(text)
        return {one: tuple(texts) for one, texts in found.items()}

    def _iter_strings(self) -> Iterator[str]:
        yield from _UNREADABLE_EXAMPLES.get(self.kind, ())
        match self.kind:
            case "path":
                yield from islice(_unused_strings("/", "", self._exact), 3)
                for path in self._exact:
                    yield path or "/"
                    yield from (f"{path}/{word}" for word in _UNUSED_WORDS)
            case "domain":
                for host in self._hosts.iter_examples():
                    yield host
                    yield f"https://{host}/"
                    yield f"https://{host}/{_UNUSED_WORDS[0]}"
            case "email":
                for address in self._exact:
                    yield address
                    yield address.upper()
                for host in self._hosts.iter_examples():
                    yield from (f"{word}@{host}" for word in _UNUSED_WORDS)
                    yield next(_unused_strings("", f"@{host}", self._exact))
            case _:
                yield from islice(_unused_strings("", "", self._exact), 3)
                yield from self._exact

    def _add_entry(self, entry: str, bit: int) -> None:
        if self.kind == "domain":
            self._hosts.add(entry, bit)
        elif self.kind == "email" and entry.startswith("*@"):
            self._hosts.add(entry[2:], bit)
        else:
            read = normalize_value(self.kind, entry) or ""
            self._exact[read] = self._exact.get(read, 0) | bit

    def _class_of_path(self, path: str) -> int:
        found = self._exact.get("", 0)
        at = path.find("/", 1)
        while at >= 0:
            found |= self._exact.get(path[:at], 0)
            at = path.find("/", at + 1)
        return found | self._exact.get(path, 0)
