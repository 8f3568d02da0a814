"""Prompts written short, for tests of what providers make of them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Block, Marker, Prompt, Section
from peripety.simulator.state import Table
from peripety.simulator.truth.cache.prompt_caches import PromptCaches
from peripety.simulator.truth.models import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.truth.cache.visit import Visit

__all__ = ["NOW", "Client", "block", "prompt"]

# A Wednesday at noon, UTC; DeepSeek's prices are not at their peak.
NOW = 1_793_188_800.0


def block(
    text: str,
    tokens: int,
    *,
    ttl: str | None = None,
    kind: str = "text",
    message: int = 0,
    section: Section = Section.MESSAGES,
) -> Block:
    """A block of so many tokens, with a marker if it has a TTL; its content is its text, over and over."""
    long = (text * (4 * tokens // max(1, len(text)) + 1))[: 4 * tokens]
    content = json.dumps({"text": long, "type": kind}, separators=(",", ":")).encode()
    outside = section is not Section.MESSAGES
    return Block(section, kind, content, tokens, Marker(ttl) if ttl else None, -1 if outside else message)


def prompt(*blocks: Block, settings: dict[Section, bytes] | None = None, **controls: Any) -> Prompt:
    """A prompt of these blocks."""
    return Prompt(blocks, settings or {}, controls)


class Client:
    """Somebody who asks a model, one request after the other, at the times of a clock moved by hand."""

    def __init__(
        self, api: Api, model: str, *, caches: PromptCaches | None = None, scope: str = "one"
    ) -> None:
        tables: dict[str, Table] = defaultdict(Table)
        self.caches = caches or PromptCaches(tables["cache"], tables["contents"])
        self.model = catalogue().find(model, api)
        self.scope = scope
        self.now = NOW

    def other(self, *, model: str | None = None, scope: str | None = None) -> Client:
        """Somebody else, or the same one, with another model, at the same caches."""
        api = self.model.apis[0]
        other = Client(api, model or self.model.name, caches=self.caches, scope=scope or self.scope)
        other.now = self.now
        return other

    def look(self, asked: Prompt) -> Visit:
        """Only look."""
        return self.caches.visit(self.model, self.scope, asked, self.now)

    def ask(self, asked: Prompt, *, seconds: float = 0, answer: Sequence[Block] = ()) -> Visit:
        """Ask, and have the whole answer so many seconds later."""
        visit = self.look(asked)
        visit.accepted()
        visit.started()
        self.now += seconds
        visit.finished(self.now, answer)
        return visit
