"""One request's visit to the prompt cache: what it finds there, and what it leaves when."""

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
    """What is to be kept: a prefix's key, and for how many seconds."""

    key: str
    seconds: int


class Entries:
    """What is cached, by key, each with the time at which it is forgotten.

    Args:
        table: keeps it.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def life(self, key: str, now: float) -> int | None:
        """For how many seconds an entry is kept after each use; None if it is not there, or not any more."""
        row = self._table.get(key)
        if row is None:
            return None
        expires, seconds = row
        return seconds if now < expires else None

    def keep(self, entry: Entry, since: float) -> None:
        """Keep an entry from a time on; one that is kept for longer already is left as it is."""
        expires = since + entry.seconds
        row = self._table.get(entry.key)
        if row is None or row[0] < expires:
            self._table.put(entry.key, [expires, entry.seconds])

    def requests(self, kind: str, now: float) -> int:
        """How many requests of a kind there were in this minute."""
        row = self._table.get(COUNTED + kind)
        return row[1] if row and row[0] == now // MINUTE else 0

    def count(self, kind: str, now: float) -> None:
        """Count a request of a kind."""
        self._table.put(COUNTED + kind, [now // MINUTE, self.requests(kind, now) + 1])


@dataclass(frozen=True, slots=True)
class Findings:
    """What a request finds in the cache, and what it is going to leave there.

    Attributes:
        read: tokens that were found.
        written: tokens that are written, by TTL.
        used: entries that were found, and live on from the request's time.
        at_start: entries that can be found once the answer starts; they live from the request's time on.
        at_end: entries that can be found once the answer has ended; they live from then on.
        after_answer: the key of the prompt with the answer after it, where that is kept too.
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
    """A request's visit to the cache. Looking changes nothing; each step of its life is told by a call.

    Attributes:
        read: input tokens that were in the cache.
        written: input tokens that are written to it, by TTL.
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
        """The request is served: what it reads counts as used."""
        for entry in self._findings.used:
            self._entries.keep(entry, self._begun)
        if self._findings.counted:
            self._entries.count(self._findings.counted, self._begun)

    def started(self) -> None:
        """The first byte of the answer leaves."""
        for entry in self._findings.at_start:
            self._entries.keep(entry, self._begun)

    def finished(self, now: float, answer: Sequence[Block] = ()) -> None:
        """The answer has ended.

        Args:
            now: when.
            answer: the answer, as the next prompt would repeat it.
        """
        kept = list(self._findings.at_end)
        if answer and self._findings.after_answer:
            kept.append(self._findings.after_answer(answer))
        for entry in kept:
            self._entries.keep(entry, now)
