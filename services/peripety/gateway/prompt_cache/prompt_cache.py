"""Planner of prompt-cache use: cache breakpoints of a call, and the prediction of its effect.

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

Rejected, by measurement (docs/gateway.md): one automatic marker at the end, which shares nothing between
conversations; markers on the first messages, or on the system text only, which pay for growing histories
again and again; a marker on every message, which exceeds the provider's maximum.

`first_difference` reports where a conversation stops extending its cached prefix, for example because its
tools or its system text have changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.catalogue import CacheKind, cost_of
from peripety.gateway.model import CacheBlock, CacheBreakpoint, CachePlan, CacheTTL, Usage
from peripety.gateway.prompt_cache.entries import Entries
from peripety.gateway.prompt_cache.expectation import Expectation, expect
from peripety.gateway.prompt_cache.layout import place_markers
from peripety.gateway.prompt_cache.lineages import Lineages
from peripety.gateway.prompt_cache.prompt import Prompt, lineage_of
from peripety.gateway.prompt_cache.tokens import Estimate, Tokens
from peripety.gateway.prompt_cache.visit import Beliefs, Planned, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from peripety.gateway.catalogue import CacheRules
    from peripety.gateway.prompt_cache.prompt import Block
    from peripety.gateway.providers.base import Call

__all__ = ["PromptCache"]


class PromptCache:
    """Planner of prompt-cache use, based on the entries assumed to exist.

    Args:
        now: monotonic clock, in seconds.
        today: current time with time zone, for prices.
        tokens: token counter; by default an estimate.
    """

    def __init__(
        self, now: Callable[[], float], today: Callable[[], datetime], tokens: Tokens | None = None
    ) -> None:
        self._today = today
        self._beliefs = Beliefs(now, Entries(now), Lineages(), tokens or Estimate())

    def visit(self, provider: str, account: str, call: Call) -> Visit:
        """Plan a call. Planning changes no state; the returned visit records what the call reveals.

        Args:
            provider: name of the provider.
            account: the account; accounts share no entries.
            call: the call; its breakpoints are replaced by the planned ones.
        """
        if not call.request.cache.enabled or call.data.cache.kind is CacheKind.NONE:
            return Visit(replace(call, breakpoints=()), self._beliefs, None)
        planned = self._plan(provider, account, call)
        return Visit(replace(call, breakpoints=planned.plan.breakpoints), self._beliefs, planned)

    def _plan(self, provider: str, account: str, call: Call) -> Planned:
        request = call.request
        prompt = Prompt(call, provider, account, self._beliefs.tokens.count_for(call))
        markers, expectation = self._markers(call, prompt)
        lineage, model = lineage_of(request), f"{provider}/{call.model}"
        place = None
        # A request without history starts a conversation, unless it names one.
        if request.conversation_id is not None or len(request.messages) > 1:
            place = self._beliefs.lineages.first_difference(lineage, model, prompt.blocks)
        ttl = request.cache.ttl
        plan = CachePlan(
            breakpoints=tuple(_breakpoint(prompt.blocks[marker], ttl) for marker in markers),
            predicted_read_tokens=expectation.read,
            predicted_write_tokens=expectation.written,
            first_difference=place and CacheBreakpoint(place.block, ttl, place.message),
        )
        return Planned(plan, prompt, expectation, lineage, model)

    def _markers(self, call: Call, prompt: Prompt) -> tuple[Sequence[int], Expectation]:
        """Return the blocks that get a marker, and the prediction for them."""
        rules, entries, blocks = call.data.cache, self._beliefs.entries, prompt.blocks
        seconds = _seconds(rules, call.request.cache.ttl)
        found = (number for number in range(len(blocks) - 1, -1, -1) if entries.life(blocks[number].key))
        markers = place_markers(rules, blocks, next(found, -1))
        expectation = expect(rules, blocks, markers, seconds, entries)
        if rules.kind is CacheKind.BREAKPOINTS and not self._pays(call, prompt.tokens, expectation):
            return (), Expectation()
        return markers, expectation

    def _pays(self, call: Call, tokens: int, expectation: Expectation) -> bool:
        """Return True if the markers save money over the expected number of uses."""
        reuse = call.request.cache.expected_reuse
        if not reuse:
            return True  # unknown
        read, written = expectation.read, expectation.written
        long = written if call.request.cache.ttl is CacheTTL.ONE_HOUR else 0
        when = self._today()
        now = cost_of(Usage(tokens, 0, read, written, long_cache_write_tokens=long), call.data, when)
        later = cost_of(Usage(tokens, 0, read + written), call.data, when)
        return now is None or later is None or now.cache_savings + reuse * later.cache_savings >= 0


def _breakpoint(block: Block, ttl: CacheTTL) -> CacheBreakpoint:
    return CacheBreakpoint(block.section, ttl, block.message if block.section is CacheBlock.MESSAGE else 0)


def _seconds(rules: CacheRules, ttl: CacheTTL) -> float:
    """Return the lifetime of written entries: the longest one for ONE_HOUR, else the shortest."""
    times = tuple(rules.ttls.values()) or (0,)
    return times[-1] if ttl is CacheTTL.ONE_HOUR else times[0]
