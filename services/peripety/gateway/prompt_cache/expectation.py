"""What a provider's cache is expected to do with a prompt, by the rules of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.prompt_cache.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.gateway.catalogue import CacheRules
    from peripety.gateway.prompt_cache.entries import Entries
    from peripety.gateway.prompt_cache.prompt import Block

__all__ = ["Expectation", "expect"]

_SEEN = b"seen "
"""Before the keys of what DeepSeek was sent but has not kept: it shows where prompts part."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a request finds in the cache, and what it leaves there.

    Attributes:
        read: tokens that are found.
        written: tokens that are written, at their price.
        used: what is found; it lives on from the request's time.
        kept: what is there afterwards.
        at_end: whether that can be found at the end of the answer only, and lives from then on; else from the
            beginning of the answer on, and it lives from the request's time on.
        cached: how many blocks of the prompt are in the cache afterwards.
        answer_seconds: for how long the prompt is kept with its answer behind it; 0 where it is not.
    """

    read: int = 0
    written: int = 0
    used: tuple[Entry, ...] = ()
    kept: tuple[Entry, ...] = ()
    at_end: bool = True
    cached: int = 0
    answer_seconds: float = 0


def expect(
    rules: CacheRules, blocks: Sequence[Block], markers: Sequence[int], seconds: float, entries: Entries
) -> Expectation:
    """Return what is expected of a prompt.

    Args:
        rules: how the model's prompts are cached.
        blocks: the prompt.
        markers: the blocks with a marker.
        seconds: for how long to keep what is written.
        entries: what is believed to be cached.
    """
    match rules.kind:
        case CacheKind.BREAKPOINTS:
            return _by_markers(rules, blocks, markers, seconds, entries)
        case CacheKind.AUTOMATIC_BREAKPOINTS:
            return _by_ends(rules, blocks, markers, seconds, entries)
        case CacheKind.UNITS:
            return _by_units(rules, blocks, seconds, entries)
        case CacheKind.AUTOMATIC | CacheKind.IMPLICIT:
            return _by_steps(rules, blocks, seconds, entries)
        case CacheKind.NONE:
            return Expectation()


def _by_markers(
    rules: CacheRules, blocks: Sequence[Block], markers: Sequence[int], seconds: float, entries: Entries
) -> Expectation:
    """Anthropic: each marker finds the nearest entry among the last positions before it."""
    used: dict[int, Entry] = {}
    for marker in markers:
        beyond = blocks[marker].position - rules.lookback
        near = (number for number in range(marker, -1, -1) if blocks[number].position > beyond)
        used |= _first_found(blocks, near, entries)
    hit = max(used, default=-1)
    return Expectation(
        read=_tokens(blocks, hit),
        written=_tokens(blocks, markers[-1]) - _tokens(blocks, hit) if markers else 0,
        used=tuple(used.values()),
        kept=_entries(blocks, [marker for marker in markers if marker > hit], seconds),
        at_end=False,
        cached=markers[-1] + 1 if markers else 0,
    )


def _by_ends(
    rules: CacheRules, blocks: Sequence[Block], markers: Sequence[int], seconds: float, entries: Entries
) -> Expectation:
    """OpenAI from GPT-5.6 on: the ends of messages are looked up, and the end of the prompt is marked too."""
    last = len(blocks) - 1
    if _tokens(blocks, last) < rules.minimum_tokens:
        return Expectation()
    ends = [number for number in range(last, -1, -1) if blocks[number].ends]
    used = _first_found(blocks, ends[: rules.lookback], entries)
    hit = max(used, default=-1)
    written = _entries(blocks, [marker for marker in (*markers, last) if marker > hit], seconds)
    return Expectation(
        read=_tokens(blocks, hit),
        written=_tokens(blocks, last) - _tokens(blocks, hit),
        used=tuple(used.values()),
        kept=(*used.values(), *written),
        cached=len(blocks),
    )


def _by_steps(rules: CacheRules, blocks: Sequence[Block], seconds: float, entries: Entries) -> Expectation:
    """OpenAI before GPT-5.6, and Gemini: whatever a prompt before began with, in whole steps."""
    kept = _entries(blocks, range(len(blocks)), seconds)
    hit = max(_first_found(blocks, _backwards(blocks), entries), default=-1)
    read = _in_steps(rules, _tokens(blocks, hit))
    if read < rules.minimum_tokens:
        return Expectation(kept=kept, cached=len(blocks))
    return Expectation(read, used=kept[: hit + 1], kept=kept, cached=len(blocks))


def _by_units(rules: CacheRules, blocks: Sequence[Block], seconds: float, entries: Entries) -> Expectation:
    """DeepSeek: whole units, at the ends of prompts and of answers, and where prompts were seen to part."""
    used = _first_found(blocks, _backwards(blocks), entries)
    parted = [number for number in _backwards(blocks) if entries.life(_SEEN + blocks[number].key)]
    seen = [entry._replace(key=_SEEN + entry.key) for entry in _entries(blocks, _backwards(blocks), seconds)]
    return Expectation(
        read=_in_steps(rules, _tokens(blocks, max(used, default=-1))),
        used=tuple(used.values()),
        kept=(*_entries(blocks, {*parted[:1], len(blocks) - 1}, seconds), *seen),
        cached=len(blocks),
        answer_seconds=seconds,
    )


def _first_found(blocks: Sequence[Block], numbers: Iterable[int], entries: Entries) -> dict[int, Entry]:
    """The first of some blocks whose prefix is cached, with its entry; empty when none is."""
    for number in numbers:
        block = blocks[number]
        seconds = entries.life(block.key)
        if seconds is not None:
            return {number: Entry(block.key, seconds, block.tokens)}
    return {}


def _entries(blocks: Sequence[Block], numbers: Iterable[int], seconds: float) -> tuple[Entry, ...]:
    return tuple(Entry(blocks[number].key, seconds, blocks[number].tokens) for number in numbers)


def _backwards(blocks: Sequence[Block]) -> range:
    return range(len(blocks) - 1, -1, -1)


def _tokens(blocks: Sequence[Block], number: int) -> int:
    """The tokens up to the end of a block; 0 before the first."""
    return blocks[number].tokens if number >= 0 else 0


def _in_steps(rules: CacheRules, tokens: int) -> int:
    return tokens - tokens % (rules.step_tokens or 1)
