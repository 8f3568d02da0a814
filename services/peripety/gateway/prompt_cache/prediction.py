"""Prediction of a provider's prompt cache: expected reads and writes of a call, by the rules of its kind.

The model of the cache holds the entries that are assumed to exist, with their expiry. `PrefixTracker` finds
where a conversation stops extending its cached prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from peripety.core.lru import LruCache
from peripety.gateway.models.model_data import CacheKind
from peripety.gateway.types.response import CacheBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.prompt_cache.prefix import PromptBlock


_MAX_ENTRIES = 100_000
"""About 20 MB of keys and times."""


class CachedPrefix(NamedTuple):
    """A cached prefix.

    Attributes:
        key: digest of the prefix.
        lifetime: lifetime after each use.
        tokens: size of the prefix; 0 where that does not matter.
    """

    key: bytes
    lifetime: float
    tokens: int = 0


class CachedPrefixes:
    """All prefixes assumed to be cached, by key, in LRU order.

    Args:
        now: monotonic clock, in seconds.
        max_entries: the maximum number of entries.
    """

    def __init__(self, now: Callable[[], float], max_entries: int = _MAX_ENTRIES) -> None:
        self._now = now
        self._expiries: LruCache[bytes, tuple[float, float]] = LruCache(max_entries)

    def lifetime_of(self, key: bytes) -> float | None:
        """Return the lifetime of an entry in seconds; None if it does not exist or has expired."""
        expires, seconds = self._expiries.get(key) or (0.0, None)
        return seconds if self._now() < expires else None

    def add(self, entry: CachedPrefix, started_at: float) -> None:
        """Add an entry with its start time; an existing entry with a later expiry is left unchanged."""
        expires = started_at + entry.lifetime
        known = self._expiries.get(entry.key)
        if known is None or known[0] < expires:
            self._expiries.put(entry.key, (expires, entry.lifetime))

    def remove(self, key: bytes) -> None:
        """Remove an entry."""
        self._expiries.remove(key)


_SEEN_PREFIX = b"seen "
"""Key prefix of prompts that DeepSeek received but did not cache; used to find where prompts diverge."""


@dataclass(frozen=True, slots=True)
class CachePrediction:
    """Predicted effect of a request on the cache.

    Attributes:
        read_tokens: tokens read from the cache.
        written_tokens: tokens written to it, at the write price.
        read_entries: entries that are read; their lifetime restarts at the request's time.
        entries_after: entries that exist afterwards.
        readable_at_end: whether those become readable, and their lifetime starts, at the end of the
            answer; else they
            are readable from its start, and their lifetime starts at the request's time.
        cached_blocks: how many blocks of the prompt are cached afterwards.
        answer_lifetime: lifetime of the prompt together with its answer; 0 if that is not cached.
    """

    read_tokens: int = 0
    written_tokens: int = 0
    read_entries: tuple[CachedPrefix, ...] = ()
    entries_after: tuple[CachedPrefix, ...] = ()
    readable_at_end: bool = True
    cached_blocks: int = 0
    answer_lifetime: float = 0


def predict_usage(
    rules: CacheRules,
    blocks: Sequence[PromptBlock],
    markers: Sequence[int],
    lifetime: float,
    entries: CachedPrefixes,
) -> CachePrediction:
    """Return the predicted effect of a prompt.

    Args:
        rules: the prompt-cache rules of the model.
        blocks: the prompt.
        markers: indices of the blocks with a marker.
        lifetime: lifetime of written entries.
        entries: the entries assumed to be cached.
    """
    match rules.kind:
        case CacheKind.BREAKPOINTS:
            return _predict_breakpoints(rules, blocks, markers, lifetime, entries)
        case CacheKind.AUTOMATIC_BREAKPOINTS:
            return _predict_automatic_breakpoints(rules, blocks, markers, lifetime, entries)
        case CacheKind.UNITS:
            return _predict_units(rules, blocks, lifetime, entries)
        case CacheKind.AUTOMATIC | CacheKind.IMPLICIT:
            return _predict_steps(rules, blocks, lifetime, entries)
        case CacheKind.NONE:
            return CachePrediction()


def _predict_breakpoints(
    rules: CacheRules,
    blocks: Sequence[PromptBlock],
    markers: Sequence[int],
    seconds: float,
    entries: CachedPrefixes,
) -> CachePrediction:
    """Predict Anthropic's cache: each marker finds the nearest entry within the lookback before it."""
    used: dict[int, CachedPrefix] = {}
    for marker in markers:
        beyond = blocks[marker].position - rules.lookback
        near = (number for number in range(marker, -1, -1) if blocks[number].position > beyond)
        used |= _find_first_cached(blocks, near, entries)
    hit = max(used, default=-1)
    return CachePrediction(
        read_tokens=_tokens_until(blocks, hit),
        written_tokens=_tokens_until(blocks, markers[-1]) - _tokens_until(blocks, hit) if markers else 0,
        read_entries=tuple(used.values()),
        entries_after=_to_entries(blocks, [marker for marker in markers if marker > hit], seconds),
        readable_at_end=False,
        cached_blocks=markers[-1] + 1 if markers else 0,
    )


def _predict_automatic_breakpoints(
    rules: CacheRules,
    blocks: Sequence[PromptBlock],
    markers: Sequence[int],
    seconds: float,
    entries: CachedPrefixes,
) -> CachePrediction:
    """Predict OpenAI's cache from GPT-5.6 on.

    It looks up the ends of messages, and also marks the end of the prompt.
    """
    last = len(blocks) - 1
    if _tokens_until(blocks, last) < rules.minimum_tokens:
        return CachePrediction()
    ends = [number for number in range(last, -1, -1) if blocks[number].is_last]
    used = _find_first_cached(blocks, ends[: rules.lookback], entries)
    hit = max(used, default=-1)
    written = _to_entries(blocks, [marker for marker in (*markers, last) if marker > hit], seconds)
    return CachePrediction(
        read_tokens=_tokens_until(blocks, hit),
        written_tokens=_tokens_until(blocks, last) - _tokens_until(blocks, hit),
        read_entries=tuple(used.values()),
        entries_after=(*used.values(), *written),
        cached_blocks=len(blocks),
    )


def _predict_steps(
    rules: CacheRules,
    blocks: Sequence[PromptBlock],
    seconds: float,
    entries: CachedPrefixes,
) -> CachePrediction:
    """Predict the caches of OpenAI before GPT-5.6 and of Gemini: common prefixes, in whole steps."""
    kept = _to_entries(blocks, range(len(blocks)), seconds)
    hit = max(_find_first_cached(blocks, _reversed_indices(blocks), entries), default=-1)
    read = _round_down_to_step(rules, _tokens_until(blocks, hit))
    if read < rules.minimum_tokens:
        return CachePrediction(entries_after=kept, cached_blocks=len(blocks))
    return CachePrediction(read, read_entries=kept[: hit + 1], entries_after=kept, cached_blocks=len(blocks))


def _predict_units(
    rules: CacheRules,
    blocks: Sequence[PromptBlock],
    seconds: float,
    entries: CachedPrefixes,
) -> CachePrediction:
    """Predict DeepSeek's cache: whole units, at the ends of prompts and answers, and at divergences."""
    used = _find_first_cached(blocks, _reversed_indices(blocks), entries)
    parted = [
        number
        for number in _reversed_indices(blocks)
        if entries.lifetime_of(_SEEN_PREFIX + blocks[number].key)
    ]
    seen = [
        entry._replace(key=_SEEN_PREFIX + entry.key)
        for entry in _to_entries(blocks, _reversed_indices(blocks), seconds)
    ]
    return CachePrediction(
        read_tokens=_round_down_to_step(rules, _tokens_until(blocks, max(used, default=-1))),
        read_entries=tuple(used.values()),
        entries_after=(*_to_entries(blocks, {*parted[:1], len(blocks) - 1}, seconds), *seen),
        cached_blocks=len(blocks),
        answer_lifetime=seconds,
    )


def _find_first_cached(
    blocks: Sequence[PromptBlock],
    numbers: Iterable[int],
    entries: CachedPrefixes,
) -> dict[int, CachedPrefix]:
    """Return the first of some blocks whose prefix is cached, with its entry; empty if none is cached."""
    for number in numbers:
        block = blocks[number]
        seconds = entries.lifetime_of(block.key)
        if seconds is not None:
            return {number: CachedPrefix(block.key, seconds, block.tokens)}
    return {}


def _to_entries(
    blocks: Sequence[PromptBlock],
    numbers: Iterable[int],
    seconds: float,
) -> tuple[CachedPrefix, ...]:
    return tuple(CachedPrefix(blocks[number].key, seconds, blocks[number].tokens) for number in numbers)


def _reversed_indices(blocks: Sequence[PromptBlock]) -> range:
    return range(len(blocks) - 1, -1, -1)


def _tokens_until(blocks: Sequence[PromptBlock], number: int) -> int:
    """Return the tokens up to the end of a block; 0 before the first."""
    return blocks[number].tokens if number >= 0 else 0


def _round_down_to_step(rules: CacheRules, tokens: int) -> int:
    return tokens - tokens % (rules.step_tokens or 1)


_MAX_CONVERSATIONS = 2_000
_MAX_BLOCKS = 2_000
"""Per conversation; later blocks are not compared."""

_KEY_BYTES = 8
"""Stored length of a key. A collision hides a difference in a report and has no other effect."""

_SECTION_ORDER = (CacheBlock.MODEL, CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)


class FirstDifference(NamedTuple):
    """A position in a prompt; `message` is the index of the message, from 0, in the section of messages."""

    block: CacheBlock
    message: int = 0


@dataclass(frozen=True, slots=True)
class _PromptOutline:
    """Outline of a cached prompt, for comparison with later ones.

    Attributes:
        model: the requested model.
        keys: truncated keys of all cached blocks, concatenated.
        tools: number of tool blocks.
        system: number of system blocks.
    """

    model: str
    keys: bytes
    tools: int
    system: int

    def key(self, number: int) -> bytes:
        return self.keys[number * _KEY_BYTES : (number + 1) * _KEY_BYTES]

    def section(self, number: int) -> CacheBlock:
        if number < self.tools:
            return CacheBlock.TOOLS
        return CacheBlock.SYSTEM if number < self.tools + self.system else CacheBlock.MESSAGE


class PrefixTracker:
    """The last cached prompt of each conversation, in LRU order."""

    def __init__(self) -> None:
        self._outlines: LruCache[str, _PromptOutline] = LruCache(_MAX_CONVERSATIONS)

    def first_difference(
        self,
        conversation: str,
        model: str,
        blocks: Sequence[PromptBlock],
    ) -> FirstDifference | None:
        """Return the first difference from the cached prompt; None if the prompt only extends it.

        Args:
            conversation: the conversation.
            model: the requested model.
            blocks: the prompt.
        """
        before = self._outlines.get(conversation)
        if before is None:
            return None
        if before.model != model:
            return FirstDifference(CacheBlock.MODEL)
        for number, block in enumerate(blocks[: len(before.keys) // _KEY_BYTES]):
            if block.key[:_KEY_BYTES] != before.key(number):
                # If a section has lost its last block, the first block of the next section is at its index.
                section = min(before.section(number), block.section, key=_SECTION_ORDER.index)
                return FirstDifference(section, block.message if section is CacheBlock.MESSAGE else 0)
        return None

    def update(self, conversation: str, model: str, cached: Sequence[PromptBlock]) -> None:
        """Store the cached prompt of a conversation; an empty one does not replace an existing one."""
        if not cached:
            return
        cached = cached[:_MAX_BLOCKS]
        sections = [block.section for block in cached]
        self._outlines.put(
            conversation,
            _PromptOutline(
                model,
                b"".join(block.key[:_KEY_BYTES] for block in cached),
                sections.count(CacheBlock.TOOLS),
                sections.count(CacheBlock.SYSTEM),
            ),
        )
