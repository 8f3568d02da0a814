"""Prompts written short, for tests of what providers make of them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.provider_rules.prompt_cache import SimPromptCaches
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import Api, CacheBreakpoint, CacheSection, SimBlock, SimPrompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit


# A Wednesday at noon, UTC; DeepSeek's prices are not at their peak.
NOW = 1_793_188_800.0


def block(
    text: str,
    tokens: int,
    *,
    ttl: str | None = None,
    kind: str = "text",
    message: int = 0,
    section: CacheSection = CacheSection.MESSAGES,
) -> SimBlock:
    """A block of so many tokens, with a marker if it has a TTL; its content is its text, over and over."""
    long = (text * (4 * tokens // max(1, len(text)) + 1))[: 4 * tokens]
    content = json.dumps({"text": long, "type": kind}, separators=(",", ":")).encode()
    outside = section is not CacheSection.MESSAGES
    return SimBlock(
        section,
        kind,
        content,
        tokens,
        CacheBreakpoint(ttl) if ttl else None,
        -1 if outside else message,
    )


def prompt(
    *blocks: SimBlock,
    settings: dict[CacheSection, bytes] | None = None,
    **controls: Any,
) -> SimPrompt:
    """A prompt of these blocks."""
    return SimPrompt(blocks, settings or {}, controls)


class Client:
    """Somebody who asks a model, one request after the other, at the times of a clock moved by hand."""

    def __init__(
        self,
        api: Api,
        model: str,
        *,
        caches: SimPromptCaches | None = None,
        scope: str = "one",
    ) -> None:
        tables: dict[str, StateTable] = defaultdict(StateTable)
        self.caches = caches or SimPromptCaches(tables["cache"], tables["contents"])
        self.model = load_models().find(model, api)
        self.scope = scope
        self.now = NOW

    def other(self, *, model: str | None = None, scope: str | None = None) -> Client:
        """Somebody else, or the same one, with another model, at the same caches."""
        api = self.model.apis[0]
        other = Client(api, model or self.model.name, caches=self.caches, scope=scope or self.scope)
        other.now = self.now
        return other

    def look(self, asked: SimPrompt) -> SimCacheVisit:
        """Only look."""
        return self.caches.begin_visit(self.model, self.scope, asked, self.now)

    def ask(self, asked: SimPrompt, *, seconds: float = 0, answer: Sequence[SimBlock] = ()) -> SimCacheVisit:
        """Ask, and have the whole answer so many seconds later."""
        visit = self.look(asked)
        visit.on_accepted()
        visit.on_started()
        self.now += seconds
        visit.on_finished(self.now, answer)
        return visit
