"""Cache visit of one request: what it reads, and when its own entries become visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.simulator.model import Block
    from peripety.simulator.state import Table

__all__ = ["Entries", "Entry", "Findings", "Visit"]

MINUTE = 60
COUNTED = "requests "


class Entry(NamedTuple):
    """A cache entry to store: the key of a prefix, and its lifetime in seconds."""

    key: str
    seconds: int


class Entries:
    """Cache entries by key, each with its expiry time.

    Args:
        table: the storage.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def life(self, key: str, now: float) -> int | None:
        """Return the lifetime after each use in seconds; None if the entry does not exist or has expired."""
        row = self._table.get(key)
        if row is None:
            return None
        expires, seconds = row
        return seconds if now < expires else None

    def keep(self, entry: Entry, since: float) -> None:
        """Store an entry from a time on; an entry that expires later is left unchanged."""
        expires = since + entry.seconds
        row = self._table.get(entry.key)
        if row is None or row[0] < expires:
            self._table.put(entry.key, [expires, entry.seconds])

    def requests(self, kind: str, now: float) -> int:
        """Return the number of requests of a kind in this minute."""
        row = self._table.get(COUNTED + kind)
        return row[1] if row and row[0] == now // MINUTE else 0

    def count(self, kind: str, now: float) -> None:
        """Count a request of a kind."""
        self._table.put(COUNTED + kind, [now // MINUTE, self.requests(kind, now) + 1])


@dataclass(frozen=True, slots=True)
class Findings:
    """Cache reads of a request, and its pending writes.

    Attributes:
        read: number of tokens found.
        written: number of tokens to write, by TTL.
        used: entries that were found; their lifetime restarts at the request.
        at_start: entries visible from the start of the answer; their lifetime starts at the request.
        at_end: entries visible from the end of the answer; their lifetime starts then.
        after_answer: the key of the prompt with the answer, if that is cached too.
        counted: the kind of prompt whose requests are counted.
    """

    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    used: tuple[Entry, ...] = ()
    at_start: tuple[Entry, ...] = ()
    at_end: tuple[Entry, ...] = ()
    after_answer: Callable[[Sequence[Block]], Entry] | None = None
    counted: str | None = None


class Visit:
    """A request's use of the cache. The lookup changes nothing; each later moment is a method call.

    Attributes:
        read: input tokens read from the cache.
        written: input tokens written to the cache, by TTL.
        fresh: all other input tokens.
    """

    def __init__(self, entries: Entries, findings: Findings, tokens: int, now: float) -> None:
        self.read = findings.read
        self.written = dict(findings.written)
        self.fresh = tokens - self.read - sum(self.written.values())
        self._entries = entries
        self._findings = findings
        self._begun = now

    def accepted(self) -> None:
        """Mark the entries that are read as used."""
        for entry in self._findings.used:
            self._entries.keep(entry, self._begun)
        if self._findings.counted:
            self._entries.count(self._findings.counted, self._begun)

    def started(self) -> None:
        """Store the entries that become visible with the first byte of the answer."""
        for entry in self._findings.at_start:
            self._entries.keep(entry, self._begun)

    def finished(self, now: float, answer: Sequence[Block] = ()) -> None:
        """Store the entries that become visible with the end of the answer.

        Args:
            now: the time.
            answer: the answer as blocks of the next prompt.
        """
        kept = list(self._findings.at_end)
        if answer and self._findings.after_answer:
            kept.append(self._findings.after_answer(answer))
        for entry in kept:
            self._entries.keep(entry, now)
