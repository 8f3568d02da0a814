"""Narrator metrics: how faithfully turns are narrated, compared with the facts of the engine.

Canaries are random words in restricted state, which make a leak detectable in the narration.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from peripety.gateway.types.response import UsageTotal
from peripety.session.types import NarratorStats, Resolution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


KEY = "canary"
_LETTERS = 20
_MAX_ENTITIES = 8


def make_canary(seed: int, place: str) -> str:
    """Return a word that does not occur by chance, determined by seed and place."""
    digest = hashlib.sha256(f"{seed} {place}".encode()).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in digest[:_LETTERS])


def insert_canaries(
    spec: Mapping[str, Any],
    pov: str | None,
    seed: int,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Insert canaries into the hidden state and into the private state of some other entities.

    Args:
        spec: the specification.
        pov: the entity that must not learn the words; None for the public.
        seed: determines the words.

    Returns:
        The changed specification and the words.
    """
    changed = deepcopy(dict(spec))
    state = changed["state"]
    others = [entity["id"] for entity in changed.get("entities", ()) if entity["id"] != pov][:_MAX_ENTITIES]
    places: dict[str, Any] = {"hidden": state.setdefault("hidden", {})}
    if others:
        private = state.setdefault("private", {})
        places |= {name: private.setdefault(name, {}) for name in others}
    words = {}
    for place, slot in places.items():
        if isinstance(slot, dict):
            slot[KEY] = words[place] = make_canary(seed, place)
    return changed, tuple(words.values())


_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_TOLERANCE = 1e-9
# Maximum rounding error and unit of a rounded number.
_ROUNDED = ((0.5, 1.0), (0.05, 0.1))


_HARMLESS = {"tool_rounds", "tool_calls", "unchecked_answers"}


@dataclass(frozen=True, slots=True)
class TurnMetrics:
    """Metrics of one turn.

    Attributes:
        resolution: origin of the narration; None if the turn was not committed.
        conduct: statistics of the narrator.
        degraded: reason of the fallback narration; empty if the narrator succeeded.
        unsupported_numbers: numbers in the prose that do not occur in the narrator's input.
        has_leak: True if restricted information was revealed.
        usage: usage of language models.
        seconds: time from the request to its end.
        seconds_to_prose: time from the request to the first prose; None without prose.
    """

    resolution: Resolution | None
    conduct: NarratorStats = field(default_factory=NarratorStats)
    degraded: str = ""
    unsupported_numbers: tuple[str, ...] = ()
    has_leak: bool = False
    usage: UsageTotal = field(default_factory=UsageTotal)
    seconds: float = 0.0
    seconds_to_prose: float | None = None

    @property
    def is_clean(self) -> bool:
        """True if the turn has no error of any kind."""
        counted = asdict(self.conduct)
        refused = sum(count for name, count in counted.items() if name not in _HARMLESS)
        return self.resolution is Resolution.NARRATED and not (
            refused or self.unsupported_numbers or self.has_leak
        )


class NarratorMetrics:
    """Metrics of all turns of a narrator.

    Attributes:
        turns: the turns, as they ended.
    """

    def __init__(self) -> None:
        self.turns: list[TurnMetrics] = []

    def add(self, played: TurnMetrics) -> None:
        """Add a turn."""
        self.turns.append(played)

    @property
    def is_safe(self) -> bool:
        """True if every turn was committed and nothing was leaked."""
        return not any(played.resolution is None or played.has_leak for played in self.turns)

    def to_figures(self) -> dict[str, Any]:
        """Return every figure by name; docs/how-to/compare-narrators.md defines them."""
        conduct = self._total_stats
        used = sum((played.usage for played in self.turns), UsageTotal())
        return {
            "rounds": len(self.turns),
            "clean_rounds": sum(played.is_clean for played in self.turns),
            "event_condition_errors": conduct["rejected_actions"],
            "variable_update_errors": conduct["refused_changes"],
            "malformed_answers": conduct["refused_answers"]
            - conduct["withheld_secrets"]
            - conduct["contradictions"],
            "refused_calls": conduct["refused_calls"],
            "withheld_secrets": conduct["withheld_secrets"],
            "contradictions": conduct["contradictions"],
            "unchecked_answers": conduct["unchecked_answers"],
            "leaks": sum(played.has_leak for played in self.turns),
            "unfounded_numbers": sum(len(played.unsupported_numbers) for played in self.turns),
            "repaired": self._count_resolution(Resolution.REPAIRED),
            "server_resolved": self._count_resolution(Resolution.SERVER_RESOLVED),
            "dead_turns": self._count_resolution(None),
            "degraded": dict(Counter(played.degraded for played in self.turns if played.degraded)),
            "tool_rounds": conduct["tool_rounds"],
            "tool_calls": conduct["tool_calls"],
            "model_calls": used.calls,
            "input_tokens": used.usage.input_tokens,
            "cached_tokens": used.usage.cache_read_tokens,
            "output_tokens": used.usage.output_tokens,
            "cost_pico_dollars": used.cost,
            "seconds_p50": _percentile([played.seconds for played in self.turns], 50),
            "seconds_p95": _percentile([played.seconds for played in self.turns], 95),
            "first_prose_p50": _percentile(self._prose_latencies, 50),
            "first_prose_p95": _percentile(self._prose_latencies, 95),
        }

    def _count_resolution(self, resolution: Resolution | None) -> int:
        return sum(played.resolution is resolution for played in self.turns)

    @property
    def _prose_latencies(self) -> list[float]:
        return [played.seconds_to_prose for played in self.turns if played.seconds_to_prose is not None]

    @property
    def _total_stats(self) -> dict[str, int]:
        names = [each.name for each in fields(NarratorStats)]
        return {name: sum(getattr(played.conduct, name) for played in self.turns) for name in names}


def find_unsupported_numbers(prose: str, known: Collection[float]) -> tuple[str, ...]:
    """Return the numbers of a text that match none of the known numbers, even after rounding."""
    return tuple(
        text
        for text, first in _find_numbers(prose)
        if not any(_matches_rounded(number, one) for number in _possible_values(text, first) for one in known)
    )


def _matches_rounded(written: float, known: float) -> bool:
    """Return True if a number may be another one rounded to an integer or to one decimal."""
    if not math.isfinite(written):
        return False
    off = (half for half, unit in _ROUNDED if abs(math.remainder(written, unit)) <= _TOLERANCE)
    return abs(written - known) <= next(off, 0.0) + _TOLERANCE


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all numbers of a JSON value, including those in its strings and keys."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield abs(float(value))
    elif isinstance(value, str):
        yield from (
            number for text, first in _find_numbers(value) for number in _possible_values(text, first)
        )
    else:
        yield from numbers_in(json.dumps(value, ensure_ascii=False))


def _find_numbers(text: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a text, as written and in their first reading."""
    for found in _NUMBER.finditer(text):
        digits = found[0]
        if digits.count(".") <= 1:  # else it is a date or a version
            yield digits, float(digits.replace(",", ""))


def _possible_values(text: str, first: float) -> tuple[float, ...]:
    """Return the possible values of a written number: a comma groups thousands or is a decimal comma."""
    if text.count(",") == 1 and "." not in text:
        return first, float(text.replace(",", "."))
    return (first,)


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[int((len(values) - 1) * percent / 100)] if values else 0.0
