"""Prediction of a provider's prompt cache, by the rules of its kind."""

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
"""Key prefix of prompts that DeepSeek received but did not cache; used to find where prompts diverge."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Predicted effect of a request on the cache.

    Attributes:
        read: tokens read from the cache.
        written: tokens written to it, at the write price.
        used: entries that are read; their lifetime restarts at the request's time.
        kept: entries that exist afterwards.
        at_end: whether those become readable, and their lifetime starts, at the end of the answer; else they
            are readable from its start, and their lifetime starts at the request's time.
        cached: how many blocks of the prompt are cached afterwards.
        answer_seconds: lifetime of the prompt together with its answer; 0 if that is not cached.
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
    """Return the predicted effect of a prompt.

    Args:
        rules: the prompt-cache rules of the model.
        blocks: the prompt.
        markers: indices of the blocks with a marker.
        seconds: lifetime of written entries.
        entries: the entries assumed to be cached.
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
    """Predict Anthropic's cache: each marker finds the nearest entry within the lookback before it."""
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
    """Predict OpenAI's cache from GPT-5.6 on.

    It looks up the ends of messages, and also marks the end of the prompt.
    """
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
    """Predict the caches of OpenAI before GPT-5.6 and of Gemini: common prefixes, in whole steps."""
    kept = _entries(blocks, range(len(blocks)), seconds)
    hit = max(_first_found(blocks, _backwards(blocks), entries), default=-1)
    read = _in_steps(rules, _tokens(blocks, hit))
    if read < rules.minimum_tokens:
        return Expectation(kept=kept, cached=len(blocks))
    return Expectation(read, used=kept[: hit + 1], kept=kept, cached=len(blocks))


def _by_units(rules: CacheRules, blocks: Sequence[Block], seconds: float, entries: Entries) -> Expectation:
    """Predict DeepSeek's cache: whole units, at the ends of prompts and answers, and at divergences."""
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
    """Return the first of some blocks whose prefix is cached, with its entry; empty if none is cached."""
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
    """Return the tokens up to the end of a block; 0 before the first."""
    return blocks[number].tokens if number >= 0 else 0


def _in_steps(rules: CacheRules, tokens: int) -> int:
    return tokens - tokens % (rules.step_tokens or 1)
