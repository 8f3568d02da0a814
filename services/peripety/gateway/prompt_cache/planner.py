"""Planner of prompt-cache use: breakpoints of a call, prediction of their effect, feedback from actual usage.

Providers charge a tenth of the input price or less for a prompt prefix that they find in their cache. Some
find prefixes automatically. Others need a few markers (breakpoints) per request, and charge a premium for
what they write. The planner places the markers, and predicts read and written tokens for every provider. The
prediction is part of the answer (`CachePlan`), next to the actual usage.

Design:

- A prompt is a list of blocks in the order of the cached prefix: tools, system text, messages. Each block has
  a digest of the whole prefix that ends with it. Equal digests mean equal prefixes of one account and one
  model. Prompts themselves are not stored.
- `Entries` is a model of the provider's cache: the prefixes assumed to exist, with their expiry, in a bounded
  LRU table. It is local to the process, because a wrong assumption costs money only and never a wrong answer.
- The rules of each kind of cache are data (`CacheRules`) and one function per kind. Where a provider
  guarantees no lifetime, the rules use the lower bound of its documentation.
- Planning has no side effects, so a plan can be shown without a call. The cache model changes only through
  the tracker of a call: at the first event, or at the end of the answer, whichever makes the entry readable
  at that provider.
- Reported usage corrects the model. Entries that were not read are removed, and the token estimate is
  calibrated per model.

Invariants:

- A marker never changes the content of a block, so moving markers cannot invalidate a prefix.
- No marker is on a prefix below the model's minimum, on reasoning, or on a text that describes the schema of
  this answer only: later requests do not repeat these.
- If a caller declares the expected reuse, and the write premium would not pay off, nothing is marked.

Rejected, by measurement (docs/reference/gateway.md): one automatic marker at the end, which shares nothing
between conversations; markers on the first messages, or on the system text only, which pay for growing
histories again and again; a marker on every message, which exceeds the provider's maximum.

`first_difference` reports where a conversation stops extending its cached prefix, for example because its
tools or its system text have changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from peripety.gateway.models.call_cost import cost_of
from peripety.gateway.models.model_data import CacheKind
from peripety.gateway.prompt_cache.prediction import (
    CachedPrefix,
    CachedPrefixes,
    CachePrediction,
    PrefixTracker,
    predict_usage,
)
from peripety.gateway.prompt_cache.prefix import Prompt, conversation_key
from peripety.gateway.token_estimate import LengthTokenEstimator, TokenEstimator
from peripety.gateway.types.message import ChatMessage, ChatRole
from peripety.gateway.types.request import CacheTTL
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, CachePlan, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.prompt_cache.prefix import PromptBlock
    from peripety.gateway.providers.provider import AnswerFinished, ProviderCall


_MARKER_SPACING = 15
"""Positions between two markers in appended messages; less than the lookback of a marker."""


def place_breakpoints(rules: CacheRules, blocks: Sequence[PromptBlock], last_cached: int) -> list[int]:
    """Return the indices of the blocks that get a marker, in the order of the prompt.

    In order of priority, up to the provider's maximum:

    1. the newest message, where the next request continues;
    2. if more was appended than the lookback of a marker, a message between it and the cached prefix;
    3. the system text, which other conversations share;
    4. the message before the newest, which remains if the newest is rephrased;
    5. the tools;
    6. further messages between the newest and the cached prefix.

    Args:
        rules: the prompt-cache rules of the model.
        blocks: the prompt.
        last_cached: index of the last block whose prefix is assumed to be cached; -1 for none.
    """
    ends = _markable_ends(rules, blocks)
    tools, system, messages = (
        [end for end in ends if blocks[end].section is section]
        for section in (CacheBlock.TOOLS, CacheBlock.SYSTEM, CacheBlock.MESSAGE)
    )
    if rules.kind is CacheKind.AUTOMATIC_BREAKPOINTS:
        # The provider marks the newest message itself and counts that as one of the markers.
        wanted, most = [*system, *messages[-2:-1]], rules.max_breakpoints - 1
    else:
        steps = list(_intermediate_ends(blocks, messages, last_cached))
        wanted = [*messages[-1:], *steps[:1], *system, *messages[-2:-1], *tools, *steps[1:]]
        most = rules.max_breakpoints
    return sorted(list(dict.fromkeys(wanted))[:most])


def _markable_ends(rules: CacheRules, blocks: Sequence[PromptBlock]) -> list[int]:
    """Return the last markable block of the tools, of the system text and of each message."""
    last = {
        (block.section, block.message): number for number, block in enumerate(blocks) if block.is_markable
    }
    return [number for number in last.values() if blocks[number].tokens >= rules.minimum_tokens]


def _intermediate_ends(
    blocks: Sequence[PromptBlock],
    messages: Sequence[int],
    last_cached: int,
) -> Iterator[int]:
    """Yield the ends of messages between the cached prefix and the newest, each within the lookback."""
    stops = [end for end in messages if end >= last_cached]
    reached = blocks[last_cached].position if last_cached >= 0 else -1
    for stop, following in pairwise(stops):
        if blocks[following].position - reached > _MARKER_SPACING:
            yield stop
            reached = blocks[stop].position


_TOLERANCE = 0.9
"""Tolerance of the prediction: token counts are estimates, so fewer tokens may be read than expected."""


@dataclass(frozen=True, slots=True)
class CacheModel:
    """Model of the caches of all accounts.

    Attributes:
        now: monotonic clock, in seconds.
        entries: the cached entries.
        prefixes: the last cached prompt of each conversation.
        tokens: token counter.
    """

    now: Callable[[], float]
    entries: CachedPrefixes
    prefixes: PrefixTracker
    tokens: TokenEstimator


@dataclass(frozen=True, slots=True)
class CacheCallPlan:
    """Plan of a call.

    Attributes:
        plan: the part reported to the caller.
        prompt: its prompt.
        prediction: the prediction.
        conversation: its conversation.
        model: the model, with its provider.
    """

    plan: CachePlan
    prompt: Prompt
    prediction: CachePrediction
    conversation: str
    model: str


class CacheCallTracker:
    """Tracker of one call. The cache model changes only when the progress of the call is reported.

    Args:
        call: the call, with its breakpoints.
        model: the cache model to update.
        planned: the plan; None if the cache is disabled or unknown.

    Attributes:
        call: the call to send.
    """

    def __init__(self, call: ProviderCall, model: CacheModel, planned: CacheCallPlan | None) -> None:
        self.call = call
        self._model = model
        self._planned = planned
        self._started_at = model.now()
        self._has_started = False

    @property
    def plan(self) -> CachePlan | None:
        """Return the predicted effect of the call; None if the cache is disabled or unknown."""
        return None if self._planned is None else self._planned.plan

    def on_first_event(self) -> None:
        """Record the first event of the answer. Idempotent."""
        planned = self._planned
        if planned is None or self._has_started:
            return
        self._has_started = True
        expectation = planned.prediction
        cached = planned.prompt.blocks[: expectation.cached_blocks]
        self._model.prefixes.update(planned.conversation, planned.model, cached)
        self._add_entries(expectation.read_entries, self._started_at)
        if not expectation.readable_at_end:
            self._add_entries(expectation.entries_after, self._started_at)

    def on_finished(self, finished: AnswerFinished) -> None:
        """Record the end of the answer, with the provider's token counts."""
        planned = self._planned
        if planned is None:
            return
        self.on_first_event()
        if finished.usage != Usage():
            self._correct_model(planned, finished.usage)
        now, expectation = self._model.now(), planned.prediction
        if expectation.readable_at_end:
            self._add_entries(expectation.entries_after, now)
        if expectation.answer_lifetime:
            key = planned.prompt.key_with_answer(ChatMessage(ChatRole.ASSISTANT, finished.parts))
            self._add_entries([CachedPrefix(key, expectation.answer_lifetime)], now)

    def _correct_model(self, planned: CacheCallPlan, usage: Usage) -> None:
        """Remove entries that were not found, and calibrate the token counter."""
        counted = planned.prompt.tokens
        self._model.tokens.calibrate(self.call, counted, usage.input_tokens)
        scale = usage.input_tokens / counted if counted else 1
        expected = planned.prediction
        for entry in expected.read_entries:
            # A cache that reads whole steps returns less than the entry's size.
            if usage.cache_read_tokens < _TOLERANCE * scale * min(entry.tokens, expected.read_tokens):
                self._model.entries.remove(entry.key)

    def _add_entries(self, entries: Iterable[CachedPrefix], started_at: float) -> None:
        for entry in entries:
            self._model.entries.add(entry, started_at)


class PromptCache:
    """Planner of prompt-cache use, based on the entries assumed to exist.

    Args:
        now: monotonic clock, in seconds.
        today: current time with time zone, for prices.
        tokens: token counter; by default an estimate.
    """

    def __init__(
        self,
        now: Callable[[], float],
        today: Callable[[], datetime],
        tokens: TokenEstimator | None = None,
    ) -> None:
        self._today = today
        self._model = CacheModel(now, CachedPrefixes(now), PrefixTracker(), tokens or LengthTokenEstimator())

    def plan_call(self, provider: str, account: str, call: ProviderCall) -> CacheCallTracker:
        """Plan a call. Planning changes no state; the returned visit records what the call reveals.

        Args:
            provider: name of the provider.
            account: the account; accounts share no entries.
            call: the call; its breakpoints are replaced by the planned ones.
        """
        if not call.request.cache.enabled or call.data.cache.kind is CacheKind.NONE:
            return CacheCallTracker(replace(call, breakpoints=()), self._model, None)
        planned = self._plan(provider, account, call)
        return CacheCallTracker(replace(call, breakpoints=planned.plan.breakpoints), self._model, planned)

    def _plan(self, provider: str, account: str, call: ProviderCall) -> CacheCallPlan:
        request = call.request
        prompt = Prompt(call, provider, account, self._model.tokens.counter_for(call))
        markers, expectation = self._place_markers(call, prompt)
        lineage, model = conversation_key(request), f"{provider}/{call.model}"
        place = None
        # A request without history starts a conversation, unless it names one.
        if request.conversation_id is not None or len(request.messages) > 1:
            place = self._model.prefixes.first_difference(lineage, model, prompt.blocks)
        ttl = request.cache.ttl
        plan = CachePlan(
            breakpoints=tuple(_to_breakpoint(prompt.blocks[marker], ttl) for marker in markers),
            predicted_read_tokens=expectation.read_tokens,
            predicted_write_tokens=expectation.written_tokens,
            first_difference=place and CacheBreakpoint(place.block, ttl, place.message),
        )
        return CacheCallPlan(plan, prompt, expectation, lineage, model)

    def _place_markers(self, call: ProviderCall, prompt: Prompt) -> tuple[Sequence[int], CachePrediction]:
        """Return the blocks that get a marker, and the prediction for them."""
        rules, entries, blocks = call.data.cache, self._model.entries, prompt.blocks
        seconds = _lifetime(rules, call.request.cache.ttl)
        found = (
            number for number in range(len(blocks) - 1, -1, -1) if entries.lifetime_of(blocks[number].key)
        )
        markers = place_breakpoints(rules, blocks, next(found, -1))
        expectation = predict_usage(rules, blocks, markers, seconds, entries)
        if rules.kind is CacheKind.BREAKPOINTS and not self._pays_off(call, prompt.tokens, expectation):
            return (), CachePrediction()
        return markers, expectation

    def _pays_off(self, call: ProviderCall, tokens: int, prediction: CachePrediction) -> bool:
        """Return True if the markers save money over the expected number of uses."""
        reuse = call.request.cache.expected_reuse
        if not reuse:
            return True  # unknown
        read, written = prediction.read_tokens, prediction.written_tokens
        long = written if call.request.cache.ttl is CacheTTL.ONE_HOUR else 0
        when = self._today()
        now = cost_of(Usage(tokens, 0, read, written, long_cache_write_tokens=long), call.data, when)
        later = cost_of(Usage(tokens, 0, read + written), call.data, when)
        return now is None or later is None or now.cache_savings + reuse * later.cache_savings >= 0


def _to_breakpoint(block: PromptBlock, ttl: CacheTTL) -> CacheBreakpoint:
    return CacheBreakpoint(block.section, ttl, block.message if block.section is CacheBlock.MESSAGE else 0)


def _lifetime(rules: CacheRules, ttl: CacheTTL) -> float:
    """Return the lifetime of written entries: the longest one for ONE_HOUR, else the shortest."""
    times = tuple(rules.ttls.values()) or (0,)
    return times[-1] if ttl is CacheTTL.ONE_HOUR else times[0]
