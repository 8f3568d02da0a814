"""Comparison of prices and cache rules with tokenbill; differences are listed here, with the reason."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tokenbill.core.builders import make_block, make_fingerprint, make_lane, make_request
from tokenbill.core.cache_rules import RulesTable
from tokenbill.core.records import Breakpoint, RequestParams, UsageBuckets
from tokenbill.rates.engine import RateCard
from tokenbill.rates.schema import load_builtin
from tokenbill.sim.block_replay import BlockReplayer

from peripety.llmsim.provider_rules.models import CacheFamily, load_models
from peripety.llmsim.types import Api, CacheBreakpoint, CacheSection
from support.gateway.requests import NOW, Client, block, prompt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokenbill.core.records import Request
    from tokenbill.core.types import RateRow

    from peripety.llmsim.types import SimBlock


APIS = {"anthropic_api": Api.ANTHROPIC, "openai_api": Api.OPENAI_RESPONSES}
# Its names for models, where the API has another one.
NAMES = {"claude-opus-4": "claude-opus-4-0", "claude-sonnet-4": "claude-sonnet-4-0"}
LONG = 1_000_000

DIFFERENCES = {
    ("claude-3-5-haiku", "price"): "retired long ago; it has no card, and costs nothing",
    ("claude-sonnet-4-5", "long input"): "prompts over 200,000 tokens cost more, which it does not know of",
    ("claude-opus-4-6", "long input"): "they did until 2026-03-13, too",
    ("claude-sonnet-4-6", "long input"): "they did until 2026-03-13, too",
    (
        "claude-fable-5",
        "system messages",
    ): "the provider's own list of models that take them does not name it",
    (
        "claude-mythos-5",
        "system messages",
    ): "the provider's own list of models that take them does not name it",
}


def rows() -> Iterator[RateRow]:
    return (row for row in load_builtin().rows if row.channel in APIS and row.enabled)


def differing(row: RateRow) -> Iterator[str]:
    model = load_models().find(NAMES.get(row.model, row.model), APIS[row.channel])
    at = datetime.fromisoformat(row.effective_from).replace(tzinfo=UTC).timestamp()
    price = model.price_for(10, at)
    long = model.price_for(LONG, at)
    if price is None or long is None:
        yield "price"
        return
    base = row.input_usd_per_mtok * 1_000_000
    multiples = {
        "5m": row.cache_write_5m_mult,
        "1h": row.cache_write_1h_mult,
        "30m": row.cache_write_other_mult,
    }
    over = dict(row.long_context_usd_per_mtok)
    figures = {
        "input": (price.input, base),
        "output": (price.output, row.output_usd_per_mtok * 1_000_000),
        "read": (price.read, base * (row.cache_read_mult or 0)),
        "minimum": (model.cache.minimum, row.min_cacheable_tokens),
        "long input": (long.input, over.get("input", row.input_usd_per_mtok) * 1_000_000),
        "system messages": (
            model.takes.system_messages,
            "mid_conversation_system" in row.supports or row.provider != "anthropic",
        ),
    }
    if row.provider == "openai":
        del figures["system messages"]
    for ttl, multiple in multiples.items():
        if multiple is not None:
            figures[f"write {ttl}"] = (price.written[ttl], base * multiple)
    yield from (name for name, (ours, theirs) in figures.items() if ours != theirs)


def test_prices_and_minima_are_the_same_but_for_the_listed_ones() -> None:
    found = {(row.model, figure) for row in rows() for figure in differing(row)}
    assert found == set(DIFFERENCES)


def test_there_is_something_to_compare() -> None:
    assert len(list(rows())) >= 18


def test_the_rules_of_anthropics_cache_are_the_same() -> None:
    theirs = RulesTable().rules_for("anthropic", "anthropic_api", "claude-opus-5-5")
    ours = load_models().find("claude-opus-5-5", Api.ANTHROPIC).cache
    assert theirs.ttl_options_s == tuple(ours.ttls.values())
    assert theirs.lookback_positions == ours.positions
    assert theirs.max_breakpoints == ours.breakpoints
    assert theirs.collapse_tool_runs
    assert (theirs.ttl_measured_from, theirs.visible_from) == ("request_start", "first_token")


def test_the_rules_of_openais_cache_are_the_same_but_for_the_longer_ttl() -> None:
    theirs = RulesTable().rules_for("openai", "openai_api", "gpt-5.6-sol")
    ours = load_models().find("gpt-5.6-sol", Api.OPENAI_RESPONSES).cache
    # Twelve hours came later than its table, with the Responses API.
    assert (*theirs.ttl_options_s, 43_200) == tuple(ours.ttls.values())
    assert theirs.max_breakpoints == ours.breakpoints
    assert (theirs.ttl_measured_from, theirs.visible_from) == ("last_use", "response_end")
    assert ours.family is CacheFamily.OPENAI_BREAKPOINTS


# ---- whole conversations, replayed


class Sent(NamedTuple):
    """A request of a conversation."""

    at: float
    blocks: tuple[SimBlock, ...]
    tool_choice: str


KINDS = {"tool": "tool_def", "text": "text", "tool_use": "tool_use", "tool_result": "tool_result"}


def conversation(seed: int) -> list[Sent]:
    """A conversation that grows, pauses, is edited here and there, and is marked in all sorts of places."""
    chance = random.Random(seed)
    tools = [block(f"tool {seed}", chance.randrange(1, 900), kind="tool", section=CacheSection.TOOLS)]
    system = [block(f"rules {seed}", chance.randrange(1, 900), section=CacheSection.SYSTEM)]
    history: list[SimBlock] = []
    sent: list[Sent] = []
    at, choice = NOW, "auto"
    ttls = chance.choice([("5m",), ("1h",), ("1h", "5m")])
    for turn in range(14):
        kinds = chance.choices(["text", "tool_use", "tool_result"], k=chance.randrange(1, 9))
        for number, kind in enumerate(sorted(kinds)):
            history.append(
                block(f"{turn} {number} ", chance.randrange(1, 120), kind=kind, message=len(history)),
            )
        if chance.random() < 0.1:
            history[chance.randrange(len(history))] = block(f"edited {turn}", 50)
        if chance.random() < 0.1:
            system = [block(f"rules {turn}", chance.randrange(1, 900), section=CacheSection.SYSTEM)]
        if chance.random() < 0.1:
            choice = chance.choice(["auto", "none"])
        # No whole seconds: at the very moment when a TTL ends, the two see things differently.
        at += chance.choice([2, 41, 131, 289, 311, 1801, 3677]) + turn / 1000
        blocks = [*tools, *system, *history]
        places = sorted(chance.sample(range(len(blocks)), k=min(len(blocks), chance.randrange(5))))
        turning = chance.randrange(len(places) + 1)
        for number, place in enumerate(places):
            ttl = ttls[0] if number < turning else ttls[-1]
            blocks[place] = replace(blocks[place], marker=CacheBreakpoint(ttl))
        sent.append(Sent(at, tuple(blocks), choice))
    return sent


def ours(sent: list[Sent]) -> list[UsageBuckets]:
    client = Client(Api.ANTHROPIC, "claude-opus-5-5")
    found = []
    for each in sent:
        client.now = each.at
        visit = client.ask(prompt(*each.blocks, settings={CacheSection.MESSAGES: each.tool_choice.encode()}))
        found.append(buckets(visit.fresh, visit.read, visit.written))
    return found


def buckets(fresh: int, read: int, written: dict[str, int]) -> UsageBuckets:
    return UsageBuckets(
        uncached_input=fresh,
        cache_read=read,
        cache_write_5m=written.get("5m", 0),
        cache_write_1h=written.get("1h", 0),
    )


def theirs(sent: list[Sent]) -> list[UsageBuckets]:
    lane = make_lane([replayed(number, each) for number, each in enumerate(sent)])
    outcomes = BlockReplayer().predict([lane], pricer=RateCard(load_builtin()))
    return [outcome.usage for outcome in outcomes]


def replayed(number: int, sent: Sent) -> Request:
    blocks = [
        make_block(each.content.hex(), tier=str(each.section), kind=KINDS[each.kind], est_tokens=each.tokens)
        for each in sent.blocks
    ]
    breakpoints = tuple(
        Breakpoint(place, each.marker.ttl) for place, each in enumerate(sent.blocks) if each.marker
    )
    return make_request(
        "lane",
        number,
        round(sent.at * 1000),
        UsageBuckets(uncached_input=sum(each.tokens for each in sent.blocks)),
        fingerprint=make_fingerprint(blocks),
        params=RequestParams(
            model_requested="claude-opus-5-5",
            breakpoints=breakpoints,
            tool_choice=sent.tool_choice,
        ),
    )


@pytest.mark.slow_after(2, reason="replays many conversations")
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_conversations_cost_what_the_block_replay_says(first: int) -> None:
    read = written = 0
    for seed in range(first, first + 20):
        sent = conversation(seed)
        found = ours(sent)
        assert found == theirs(sent), seed
        read += sum(each.cache_read for each in found)
        written += sum(each.cache_write_5m + each.cache_write_1h for each in found)
    assert min(read, written) > 10_000
