"""Tracker of one call's use of the prompt cache: its plan, and the feedback from its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.model import ChatMessage, ChatRole, Usage
from peripety.gateway.prompt_cache.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from peripety.gateway.model import CachePlan
    from peripety.gateway.prompt_cache.entries import Entries
    from peripety.gateway.prompt_cache.expectation import Expectation
    from peripety.gateway.prompt_cache.lineages import Lineages
    from peripety.gateway.prompt_cache.prompt import Prompt
    from peripety.gateway.prompt_cache.tokens import Tokens
    from peripety.gateway.providers.base import Call, Finished

__all__ = ["Beliefs", "Planned", "Visit"]

_NEARLY = 0.9
"""Tolerance of the prediction: token counts are estimates, so fewer tokens may be read than expected."""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Model of the caches of all accounts.

    Attributes:
        now: monotonic clock, in seconds.
        entries: the cached entries.
        lineages: the last cached prompt of each conversation.
        tokens: token counter.
    """

    now: Callable[[], float]
    entries: Entries
    lineages: Lineages
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Planned:
    """Plan of a call.

    Attributes:
        plan: the part reported to the caller.
        prompt: its prompt.
        expectation: the prediction.
        lineage: its conversation.
        model: the model, with its provider.
    """

    plan: CachePlan
    prompt: Prompt
    expectation: Expectation
    lineage: str
    model: str


class Visit:
    """Tracker of one call. The cache model changes only when the progress of the call is reported.

    Args:
        call: the call, with its breakpoints.
        beliefs: the cache model to update.
        planned: the plan; None if the cache is disabled or unknown.

    Attributes:
        call: the call to send.
    """

    def __init__(self, call: Call, beliefs: Beliefs, planned: Planned | None) -> None:
        self.call = call
        self._beliefs = beliefs
        self._planned = planned
        self._begun = beliefs.now()
        self._started = False

    @property
    def plan(self) -> CachePlan | None:
        """Return the predicted effect of the call; None if the cache is disabled or unknown."""
        return None if self._planned is None else self._planned.plan

    def started(self) -> None:
        """Record the first event of the answer. Idempotent."""
        planned = self._planned
        if planned is None or self._started:
            return
        self._started = True
        expectation = planned.expectation
        cached = planned.prompt.blocks[: expectation.cached]
        self._beliefs.lineages.remember(planned.lineage, planned.model, cached)
        self._keep(expectation.used, self._begun)
        if not expectation.at_end:
            self._keep(expectation.kept, self._begun)

    def ended(self, end: Finished) -> None:
        """Record the end of the answer, with the provider's token counts."""
        planned = self._planned
        if planned is None:
            return
        self.started()
        if end.usage != Usage():
            self._correct(planned, end.usage)
        now, expectation = self._beliefs.now(), planned.expectation
        if expectation.at_end:
            self._keep(expectation.kept, now)
        if expectation.answer_seconds:
            key = planned.prompt.key_with(ChatMessage(ChatRole.ASSISTANT, end.parts))
            self._keep([Entry(key, expectation.answer_seconds)], now)

    def _correct(self, planned: Planned, usage: Usage) -> None:
        """Remove entries that were not found, and calibrate the token counter."""
        counted = planned.prompt.tokens
        self._beliefs.tokens.learn(self.call, counted, usage.input_tokens)
        scale = usage.input_tokens / counted if counted else 1
        expected = planned.expectation
        for entry in expected.used:
            # A cache that reads whole steps returns less than the entry's size.
            if usage.cache_read_tokens < _NEARLY * scale * min(entry.tokens, expected.read):
                self._beliefs.entries.forget(entry.key)

    def _keep(self, entries: Iterable[Entry], since: float) -> None:
        for entry in entries:
            self._beliefs.entries.keep(entry, since)
