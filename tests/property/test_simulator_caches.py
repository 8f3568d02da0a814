"""Prompt caches of every kind: no token is lost, and none is read that was not sent before, and lately."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.llmsim.types import Api, CacheSection
from support.examples import example_count
from support.gateway.requests import Client, block, prompt

if TYPE_CHECKING:
    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit
    from peripety.llmsim.types import SimBlock, SimPrompt


EXAMPLES = example_count(150)

MODELS = {
    "claude-opus-5-5": Api.ANTHROPIC,
    "gpt-4o": Api.OPENAI_CHAT,
    "gpt-6.1-sol": Api.OPENAI_RESPONSES,
    "deepseek-flash": Api.DEEPSEEK,
    "gemini-2.5-pro": Api.GEMINI,
    "llama3.2": Api.OLLAMA,
}
# Tokens that two blocks of different text share, because both are JSON.
COMMON_JSON = 3


@dataclass(frozen=True)
class Step:
    """A request: how long after the one before, whose, with which blocks and marks, and how far it gets."""

    gap: float
    scope: str
    texts: list[tuple[str, int]]
    marks: set[int]
    ttl: str
    fate: str

    def prompt(self, *, marked: bool) -> SimPrompt:
        blocks = [
            block(
                text,
                300 * size,
                ttl=self.ttl if marked and number in self.marks else None,
                message=number,
                section=CacheSection.SYSTEM if number == 0 else CacheSection.MESSAGES,
            )
            for number, (text, size) in enumerate(self.texts)
        ]
        return prompt(*blocks)


steps = st.builds(
    Step,
    gap=st.sampled_from([0, 1, 100, 299, 301, 1900, 5000, 90_000]),
    scope=st.sampled_from(["one", "one", "two"]),
    texts=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), min_size=1, max_size=8),
    marks=st.sets(st.integers(0, 7), max_size=4),
    ttl=st.sampled_from(["5m", "1h"]),
    fate=st.sampled_from(["finished", "finished", "finished", "started", "abandoned"]),
)


@dataclass
class Run:
    """Steps that were executed with a model."""

    client: Client
    visits: list[SimCacheVisit] = field(default_factory=list)
    sent: list[tuple[float, str, tuple[SimBlock, ...]]] = field(default_factory=list)

    def take(self, step: Step) -> SimCacheVisit:
        self.client.now += step.gap
        self.client.scope = step.scope
        rules = self.client.model.cache
        ttl = step.ttl if step.ttl in rules.ttls else rules.default_ttl
        asked = replace(step, ttl=ttl).prompt(marked=rules.breakpoints > 0)
        visit = self.client.look(asked)
        self.visits.append(visit)
        self.check(visit, asked)
        visit.on_accepted()
        if step.fate != "abandoned":
            visit.on_started()
        if step.fate == "finished":
            visit.on_finished(self.client.now)
        self.sent.append((self.client.now, step.scope, asked.blocks))
        return visit

    def check(self, visit: SimCacheVisit, asked: SimPrompt) -> None:
        assert visit.fresh >= 0
        assert visit.fresh + visit.read + sum(visit.written.values()) == asked.tokens
        assert all(count > 0 for count in visit.written.values())
        longest = max(self.client.model.cache.ttls.values(), default=0)
        known = max(
            (
                shared(asked.blocks, blocks)
                for at, scope, blocks in self.sent
                if scope == self.client.scope and self.client.now - at < longest
            ),
            default=0,
        )
        assert visit.read <= known + COMMON_JSON * bool(known)


def shared(one: tuple[SimBlock, ...], two: tuple[SimBlock, ...]) -> int:
    tokens = 0
    for left, right in zip(one, two, strict=False):
        if left.content != right.content:
            # Texts of one letter, of different lengths: the shorter one is the beginning of the longer one.
            same = left.content[9:10] == right.content[9:10]
            return tokens + min(left.tokens, right.tokens) * same + COMMON_JSON
        tokens += left.tokens
    return tokens


def run(model: str, taken: list[Step]) -> Run:
    found = Run(Client(MODELS[model], model))
    for step in taken:
        found.take(step)
    return found


@pytest.mark.parametrize("model", MODELS)
@given(taken=st.lists(steps, min_size=1, max_size=12))
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_token_is_counted_once_and_read_only_if_sent_before(model: str, taken: list[Step]) -> None:
    run(model, taken)


@pytest.mark.parametrize("model", MODELS)
@given(taken=st.lists(steps, min_size=1, max_size=8))
@settings(max_examples=max(1, EXAMPLES // 5), deadline=None)
def test_the_same_requests_in_the_same_order_find_the_same(model: str, taken: list[Step]) -> None:
    one, two = (
        [(visit.read, visit.written, visit.fresh) for visit in run(model, taken).visits] for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("model", [name for name in MODELS if name != "llama3.2"])
def test_a_prompt_that_is_sent_twice_is_read(model: str) -> None:
    step = Step(0, "one", [("a", 9), ("b", 9)], {1}, "5m", "finished")
    again = Step(1, "one", [("a", 9), ("b", 9)], {1}, "5m", "finished")
    assert run(model, [step, again]).visits[-1].read >= 5376
