"""Plans how each call uses its provider's prompt cache."""

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
    """Plans how calls use the prompt caches of their providers, by what is believed to be in there.

    Args:
        now: seconds on a clock that never goes back.
        today: the time of day, with its zone, by which prices are looked up.
        tokens: counts the tokens of prompts; by default they are estimated.
    """

    def __init__(
        self, now: Callable[[], float], today: Callable[[], datetime], tokens: Tokens | None = None
    ) -> None:
        self._today = today
        self._beliefs = Beliefs(now, Entries(now), Lineages(), tokens or Estimate())

    def visit(self, provider: str, account: str, call: Call) -> Visit:
        """Plan a call. Looking changes nothing: what is learned from it is told to the visit.

        Args:
            provider: who is asked, by name.
            account: the account there; two of them share nothing.
            call: the call; its breakpoints are replaced by those of the plan.
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
        # What has no history is the beginning of a conversation, unless it names one.
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
        """The blocks that get a marker, and what is expected with these."""
        rules, entries, blocks = call.data.cache, self._beliefs.entries, prompt.blocks
        seconds = _seconds(rules, call.request.cache.ttl)
        found = (number for number in range(len(blocks) - 1, -1, -1) if entries.life(blocks[number].key))
        markers = place_markers(rules, blocks, next(found, -1))
        expectation = expect(rules, blocks, markers, seconds, entries)
        if rules.kind is CacheKind.BREAKPOINTS and not self._pays(call, prompt.tokens, expectation):
            return (), Expectation()
        return markers, expectation

    def _pays(self, call: Call, tokens: int, expectation: Expectation) -> bool:
        """Whether markers have saved money when the prompt was used as often as it is expected to be."""
        reuse = call.request.cache.expected_reuse
        if not reuse:
            return True  # not known
        read, written = expectation.read, expectation.written
        long = written if call.request.cache.ttl is CacheTTL.ONE_HOUR else 0
        when = self._today()
        now = cost_of(Usage(tokens, 0, read, written, long_cache_write_tokens=long), call.data, when)
        later = cost_of(Usage(tokens, 0, read + written), call.data, when)
        return now is None or later is None or now.cache_savings + reuse * later.cache_savings >= 0


def _breakpoint(block: Block, ttl: CacheTTL) -> CacheBreakpoint:
    return CacheBreakpoint(block.section, ttl, block.message if block.section is CacheBlock.MESSAGE else 0)


def _seconds(rules: CacheRules, ttl: CacheTTL) -> float:
    """How long a provider keeps what is written: it has a shortest and a longest time, or just one."""
    times = tuple(rules.ttls.values()) or (0,)
    return times[-1] if ttl is CacheTTL.ONE_HOUR else times[0]
