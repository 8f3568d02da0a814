"""DeepSeek's disk cache: whole units, stored at request ends, at branch points and at intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.truth.cache.visit import Entry, Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.model import Block
    from peripety.simulator.truth.cache.prefix import Prefixes
    from peripety.simulator.truth.cache.visit import Entries
    from peripety.simulator.truth.models import CacheRules

__all__ = ["look"]

# A prefix that was sent before but is not a unit marks a branch point.
SEEN = "seen "


def look(rules: CacheRules, entries: Entries, prefixes: Prefixes, now: float) -> Findings:
    """Return the cache findings of a prompt: the longest unit that is a prefix of it."""
    seconds = rules.ttls[rules.default_ttl]
    cuts = prefixes.all(rules.step)
    hit = next((cut for cut in reversed(cuts) if entries.life(cut.key, now)), None)
    common = next((cut for cut in reversed(cuts) if entries.life(SEEN + cut.key, now)), None)
    units = {cuts[-1].key} if cuts else set()
    units.update(cut.key for cut in cuts if cut.tokens % rules.interval == 0 and cut.tokens)
    if common:
        units.add(common.key)

    def after(answer: Sequence[Block]) -> Entry:
        return Entry(prefixes.extended(answer), seconds)

    return Findings(
        read=hit.tokens if hit else 0,
        used=(Entry(hit.key, seconds),) if hit else (),
        at_end=(
            *(Entry(key, seconds) for key in sorted(units)),
            *(Entry(SEEN + cut.key, seconds) for cut in cuts),
        ),
        after_answer=after,
    )
