"""Entries of a simulated prompt cache: hashed prompt prefixes, and the visit of one request.

A visit determines what the request reads, and when its own entries become visible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from peripety.llmsim.provider_rules.models import BYTES_PER_TOKEN
from peripety.llmsim.types import CacheSection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.llmsim.state import StateTable
    from peripety.llmsim.types import SimBlock, SimPrompt


DIGEST_BYTES = 16


class PromptPrefix(NamedTuple):
    """A prefix.

    Attributes:
        tokens: its length in tokens.
        key: its hash.
        block: the block in which it ends.
    """

    tokens: int
    key: str
    block: int


class PromptPrefixes:
    """The prefixes of a prompt.

    Args:
        scope: further parts of the key: the owner and the model.
        prompt: its blocks, in order. The settings of a section are part of every prefix that reaches into
            it or beyond.
        whole: True if the settings of all sections are part of every prefix.
    """

    def __init__(self, scope: Iterable[str], prompt: SimPrompt, *, whole: bool = False) -> None:
        self._blocks = prompt.blocks
        self._settings = dict(prompt.settings)
        self._root = blake2b(digest_size=DIGEST_BYTES)
        for text in scope:
            _update_hash(self._root, text.encode("utf-8", "surrogatepass"))
        if whole:
            for section in CacheSection:
                _update_hash(self._root, self._settings.pop(section, b""))

    def block_ends(self) -> list[PromptPrefix]:
        """Return the prefixes that end with a block, one per block."""
        return list(self._prefixes(None, self._blocks))

    def at_steps(self, every: int) -> Iterator[PromptPrefix]:
        """Yield the prefixes whose length is a multiple of a number of tokens, inside blocks too.

        Inside a block, a token is four bytes of its content.
        """
        return (cut for cut in self._prefixes(every, self._blocks) if cut.tokens % every == 0 and cut.tokens)

    def all_prefixes(self, every: int) -> list[PromptPrefix]:
        """Return the prefixes of `ends` and `steps`, shortest first."""
        return list(self._prefixes(every, self._blocks))

    def key_with_blocks(self, blocks: Iterable[SimBlock]) -> str:
        """Return the key of the whole prompt followed by more blocks."""
        *_, last = self._prefixes(None, (*self._blocks, *blocks))
        return last.key

    def _prefixes(self, every: int | None, blocks: Iterable[SimBlock]) -> Iterator[PromptPrefix]:
        running = self._root.copy()
        done = 0
        section: CacheSection | None = None
        order = tuple(CacheSection)
        for number, block in enumerate(blocks):
            if block.section is not section:
                begin = order.index(section) + 1 if section else 0
                for passed in order[begin : order.index(block.section) + 1]:
                    _update_hash(running, self._settings.get(passed, b""))
                section = block.section
            written = 0
            if every:
                for target in range((done // every + 1) * every, done + block.tokens, every):
                    until = (target - done) * BYTES_PER_TOKEN
                    running.update(block.content[written:until])
                    written = min(until, len(block.content))
                    yield PromptPrefix(target, running.hexdigest(), number)
            running.update(block.content[written:])
            running.update(len(block.content).to_bytes(8, "big"))
            done += block.tokens
            yield PromptPrefix(done, running.hexdigest(), number)


def _update_hash(hash_: blake2b, data: bytes) -> None:
    hash_.update(len(data).to_bytes(8, "big"))
    hash_.update(data)


MINUTE = 60
COUNT_PREFIX = "requests "


class SimCacheEntry(NamedTuple):
    """A cache entry to store: the key of a prefix, and its lifetime in seconds."""

    key: str
    seconds: int


class SimCacheEntries:
    """Cache entries by key, each with its expiry time.

    Args:
        table: the storage.
    """

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def lifetime(self, key: str, now: float) -> int | None:
        """Return the lifetime after each use in seconds; None if the entry does not exist or has expired."""
        row = self._table.get(key)
        if row is None:
            return None
        expires, seconds = row
        return seconds if now < expires else None

    def store(self, entry: SimCacheEntry, since: float) -> None:
        """Store an entry from a time on; an entry that expires later is left unchanged."""
        expires = since + entry.seconds
        row = self._table.get(entry.key)
        if row is None or row[0] < expires:
            self._table.put(entry.key, [expires, entry.seconds])

    def request_count(self, kind: str, now: float) -> int:
        """Return the number of requests of a kind in this minute."""
        row = self._table.get(COUNT_PREFIX + kind)
        return row[1] if row and row[0] == now // MINUTE else 0

    def count_request(self, kind: str, now: float) -> None:
        """Count a request of a kind."""
        self._table.put(COUNT_PREFIX + kind, [now // MINUTE, self.request_count(kind, now) + 1])


@dataclass(frozen=True, slots=True)
class CacheFindings:
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
    used: tuple[SimCacheEntry, ...] = ()
    at_start: tuple[SimCacheEntry, ...] = ()
    at_end: tuple[SimCacheEntry, ...] = ()
    after_answer: Callable[[Sequence[SimBlock]], SimCacheEntry] | None = None
    counted: str | None = None


class SimCacheVisit:
    """A request's use of the cache. The lookup changes nothing; each later moment is a method call.

    Attributes:
        read: input tokens read from the cache.
        written: input tokens written to the cache, by TTL.
        fresh: all other input tokens.
    """

    def __init__(self, entries: SimCacheEntries, findings: CacheFindings, tokens: int, now: float) -> None:
        self.read = findings.read
        self.written = dict(findings.written)
        self.fresh = tokens - self.read - sum(self.written.values())
        self._entries = entries
        self._findings = findings
        self._begun = now

    def on_accepted(self) -> None:
        """Mark the entries that are read as used."""
        for entry in self._findings.used:
            self._entries.store(entry, self._begun)
        if self._findings.counted:
            self._entries.count_request(self._findings.counted, self._begun)

    def on_started(self) -> None:
        """Store the entries that become visible with the first byte of the answer."""
        for entry in self._findings.at_start:
            self._entries.store(entry, self._begun)

    def on_finished(self, now: float, answer: Sequence[SimBlock] = ()) -> None:
        """Store the entries that become visible with the end of the answer.

        Args:
            now: the time.
            answer: the answer as blocks of the next prompt.
        """
        kept = list(self._findings.at_end)
        if answer and self._findings.after_answer:
            kept.append(self._findings.after_answer(answer))
        for entry in kept:
            self._entries.store(entry, now)
