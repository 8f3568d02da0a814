"""Cost of a conversation's prompts by the position of their cache markers: `make bench-prompt-cache`.

A conversation of ten turns on a system text of 4,000 tokens, half a minute from one to the next, and then the
first turn of another one on the same system text, in the request bodies that the gateway sends. The figures
are those of the scripted LLM, which counts, caches and bills like Anthropic. They are exact; no time is
measured.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.gateway.models.call_cost import cost_of
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall
from peripety.gateway.types.message import ChatMessage, Text
from peripety.gateway.types.request import CacheTTL, GenerateRequest
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, StopReason, Usage
from peripety.llmsim.types import ApiError
from support.gateway.cache_oracle import CacheTruth, TrueTokens, read_as_sent, usage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MODEL = "claude-sonnet-5"
TURNS = 10
SYSTEM_TOKENS, QUESTION_TOKENS, ANSWER_TOKENS = 4_000, 60, 110
SECONDS_BETWEEN_TURNS = 30
DAY = datetime(2026, 11, 22, tzinfo=UTC)
PICO_DOLLARS = 10**12

Layout: TypeAlias = "Callable[[ProviderCall], tuple[CacheBreakpoint, ...]]"


@dataclass(frozen=True)
class Row:
    """Result of a conversation.

    Attributes:
        layout: positions of its markers.
        turns: number of turns that were answered.
        not_read: the share of its input tokens that was not read from the cache, and cost full price or more.
        dollars: cost of its prompts.
        next_not_read: the share of the next conversation's first prompt that was not read.
        refusal: the error that ended it early, if any.
    """

    layout: str
    turns: int
    not_read: float
    dollars: float
    next_not_read: float = 1.0
    refusal: str = ""


def rows() -> Iterator[Row]:
    """Hold the conversation once for each layout."""
    yield _planned()
    yield _fixed("the system text and no more", lambda _: (_mark(CacheBlock.SYSTEM),))
    yield _fixed("automatic, by the provider", lambda _: (), {"cache_control": {"type": "ephemeral"}})
    yield _fixed("the first four messages of the user", lambda call: _messages(call)[:4])
    yield _fixed("every message of the user", _messages)
    yield _fixed("none", lambda _: ())


def _planned() -> Row:
    now = [0.0]
    cache = PromptCache(lambda: now[0], lambda: DAY, TrueTokens())
    truth, spent = CacheTruth(), []
    for call in _calls():
        visit = cache.plan_call("anthropic", "one", call)
        spent.append(_asked(truth, visit.call, now[0]))
        visit.on_finished(AnswerFinished((Text("a"),), StopReason.END, spent[-1], MODEL))
        now[0] += SECONDS_BETWEEN_TURNS
    return _row("as the gateway plans", spent)


def _fixed(name: str, layout: Layout, change: dict[str, Any] | None = None) -> Row:
    now, truth = 0.0, CacheTruth()
    spent: list[Usage] = []
    for call in _calls():
        try:
            spent.append(_asked(truth, replace(call, breakpoints=layout(call)), now, change))
        except ApiError as error:
            return replace(_row(name, spent), refusal=error.message)
        now += SECONDS_BETWEEN_TURNS
    return _row(name, spent)


def _asked(truth: CacheTruth, call: ProviderCall, now: float, change: dict[str, Any] | None = None) -> Usage:
    found = truth.look(read_as_sent(call, change), now)
    found.on_accepted()
    found.on_finished(now)
    found.on_started()
    return replace(usage_of(found), output_tokens=0)


def _calls() -> Iterator[ProviderCall]:
    data = ModelCatalog.load().find("anthropic", MODEL)
    messages: tuple[ChatMessage, ...] = ()
    for turn in range(TURNS):
        messages = (*messages, ChatMessage.user(_text(f"question {turn} ", QUESTION_TOKENS)))
        yield ProviderCall(GenerateRequest(_text("system ", SYSTEM_TOKENS), messages), MODEL, data)
        messages = (*messages, ChatMessage.assistant(_text(f"answer {turn} ", ANSWER_TOKENS)))
    other = ChatMessage.user(_text("another question ", QUESTION_TOKENS))
    yield ProviderCall(GenerateRequest(_text("system ", SYSTEM_TOKENS), (other,)), MODEL, data)


def _text(begin: str, tokens: int) -> str:
    return begin + "x" * (4 * tokens - len(begin))


def _mark(block: CacheBlock, message: int = 0) -> CacheBreakpoint:
    return CacheBreakpoint(block, CacheTTL.FIVE_MINUTES, message)


def _messages(call: ProviderCall) -> tuple[CacheBreakpoint, ...]:
    return tuple(_mark(CacheBlock.MESSAGE, at) for at in range(0, len(call.request.messages), 2))


def _row(layout: str, spent: list[Usage]) -> Row:
    data = ModelCatalog.load().find("anthropic", MODEL)
    turns, after = spent[:TURNS], spent[TURNS:]
    costs = [cost_of(usage, data, DAY) for usage in turns]
    dollars = sum(cost.total for cost in costs if cost is not None) / PICO_DOLLARS
    return Row(layout, len(turns), _not_read(turns), dollars, _not_read(after) if after else 1.0)


def _not_read(spent: list[Usage]) -> float:
    total = sum(usage.input_tokens for usage in spent)
    return (total - sum(usage.cache_read_tokens for usage in spent)) / total


def main() -> None:
    """Print the table."""
    line = "{:36} {:>5} {:>9} {:>9} {:>14}\n".format
    sys.stdout.write(line("markers", "turns", "not read", "prompts", "of the next"))
    for row in rows():
        cells = f"{row.not_read:.1%}", f"{row.dollars:.4f} $", f"{row.next_not_read:.1%}"
        sys.stdout.write(line(row.layout, row.turns, *cells))
        if row.refusal:
            sys.stdout.write(f"  refused: {row.refusal}\n")


if __name__ == "__main__":
    main()
