"""One call's visit to the prompt cache: what is planned for it, and what is learned from how it fares."""

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
"""What is found may be as little as this of what was expected: tokens are estimated."""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of the caches of all accounts.

    Attributes:
        now: seconds on a clock that never goes back.
        entries: what is cached.
        lineages: what was cached of each conversation.
        tokens: how many tokens prompts have.
    """

    now: Callable[[], float]
    entries: Entries
    lineages: Lineages
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Planned:
    """What is planned for a call.

    Attributes:
        plan: what its caller is told.
        prompt: its prompt.
        expectation: what the cache does with it.
        lineage: the conversation that it belongs to.
        model: the model, with its provider.
    """

    plan: CachePlan
    prompt: Prompt
    expectation: Expectation
    lineage: str
    model: str


class Visit:
    """A visit. What is believed changes only as it is told how the call fares.

    Args:
        call: the call, with its breakpoints.
        beliefs: what is brought up to date.
        planned: what is planned; None when the cache is left alone, or nothing is known of it.

    Attributes:
        call: the call as it is to be sent.
    """

    def __init__(self, call: Call, beliefs: Beliefs, planned: Planned | None) -> None:
        self.call = call
        self._beliefs = beliefs
        self._planned = planned
        self._begun = beliefs.now()
        self._started = False

    @property
    def plan(self) -> CachePlan | None:
        """What the cache is expected to do; None when it is left alone, or nothing is known of it."""
        return None if self._planned is None else self._planned.plan

    def started(self) -> None:
        """The first event of the answer has come; told again, it changes nothing."""
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
        """The whole answer has come, with what the provider says of its tokens."""
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
        """Forget what was not found, and count better from now on."""
        counted = planned.prompt.tokens
        self._beliefs.tokens.learn(self.call, counted, usage.input_tokens)
        scale = usage.input_tokens / counted if counted else 1
        expected = planned.expectation
        for entry in expected.used:
            # Where whole steps are read, less of an entry is expected than there is.
            if usage.cache_read_tokens < _NEARLY * scale * min(entry.tokens, expected.read):
                self._beliefs.entries.forget(entry.key)

    def _keep(self, entries: Iterable[Entry], since: float) -> None:
        for entry in entries:
            self._beliefs.entries.keep(entry, since)
