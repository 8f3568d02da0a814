"""Automatic prefix caches with token steps: OpenAI before GPT-5.6, and Gemini's implicit cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.truth.cache.visit import Entry, Findings

if TYPE_CHECKING:
    from peripety.simulator.truth.cache.prefix import Prefixes
    from peripety.simulator.truth.cache.visit import Entries
    from peripety.simulator.truth.models import CacheRules

__all__ = ["look"]


def look(rules: CacheRules, entries: Entries, prefixes: Prefixes, ttl: str, now: float) -> Findings:
    """Return the cache findings of a prompt: its longest prefix, in whole steps, of any earlier prompt."""
    cuts = [cut for cut in prefixes.steps(rules.step) if cut.tokens >= rules.minimum]
    found = next((number for number in range(len(cuts), 0, -1) if entries.life(cuts[number - 1].key, now)), 0)
    seconds = rules.ttls[ttl]
    return Findings(
        read=cuts[found - 1].tokens if found else 0,
        used=tuple(Entry(cut.key, seconds) for cut in cuts[:found]),
        at_end=tuple(Entry(cut.key, seconds) for cut in cuts),
    )
