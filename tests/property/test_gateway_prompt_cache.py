"""Predictions of prompt caches equal the bills of the scripted LLM."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.gateway.prompt_cache import planner, prefix
from peripety.gateway.prompt_cache.prediction import CachedPrefixes
from peripety.gateway.prompt_cache.prefix import segments_of
from support.examples import example_count
from support.gateway.cache_oracle import MOST_MARKERS, PROVIDERS, Tally, converse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.prompt_cache.prediction import CachedPrefix
    from peripety.gateway.prompt_cache.prefix import PromptBlock


CONVERSATIONS = example_count(150)


def wrong_predictions(conversations: int) -> int:
    wrong = 0
    for number in range(conversations):
        try:
            converse(f"7:{number}")
        except AssertionError:
            wrong += 1
    return wrong


def anywhere(random: Random) -> Callable[..., list[int]]:
    """A layout of random markers."""

    def place(rules: CacheRules, blocks: Sequence[PromptBlock], _known: int) -> list[int]:
        last = {(block.section, block.message): at for at, block in enumerate(blocks) if block.is_markable}
        ends = [at for at in last.values() if blocks[at].tokens >= rules.minimum_tokens]
        return sorted(random.sample(ends, min(len(ends), random.randint(1, rules.max_breakpoints))))

    return place


@pytest.mark.parametrize("provider", PROVIDERS)
def test_random_conversations_read_and_write_as_predicted(provider: str) -> None:
    total = Tally()
    # Fewer conversations are too few for the share of missed predictions.
    others = max(20, CONVERSATIONS // 3)
    for number in range(CONVERSATIONS if provider == "anthropic" else others):
        total += converse(f"7:{number}", PROVIDERS[provider])
    assert max(total.markers) <= MOST_MARKERS
    assert total.reading > total.requests / 3
    assert total.missed < total.requests / 20
    if PROVIDERS[provider].within is None:
        assert min(total.writing, *total.markers.values()) > total.requests / 50


def _keeping_too_long(keep: Callable[[CachedPrefixes, CachedPrefix, float], None]) -> Callable[..., None]:
    return lambda self, entry, since: keep(self, entry._replace(lifetime=entry.lifetime + 1), since)


@pytest.mark.slow(reason="shows that another test can fail")
def test_a_lifetime_that_is_too_long_by_a_second_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CachedPrefixes, "add", _keeping_too_long(CachedPrefixes.add))
    assert wrong_predictions(60) > 0


@pytest.mark.slow(reason="plays many conversations")
def test_predictions_hold_wherever_the_markers_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "place_breakpoints", anywhere(Random(7)))
    assert wrong_predictions(60) == 0


@pytest.mark.slow(reason="shows that another test can fail")
def test_positions_that_are_counted_wrongly_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the gateway's own markers, everything is reached by any way of counting.
    monkeypatch.setattr(planner, "place_breakpoints", anywhere(Random(7)))
    monkeypatch.setattr(prefix, "_MERGED_KINDS", ())
    assert wrong_predictions(60) > 0


def test_a_block_that_is_overlooked_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "segments_of", lambda *asked: list(segments_of(*asked))[1:])
    assert wrong_predictions(10) > 0
