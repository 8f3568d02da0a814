"""What another round would bring, told by what the rounds before have brought.

What tests kill and cover are taken for species, and tests for samples in which they are present. How many
species a few more samples would show for the first time follows from how many were seen once and twice:

- I. J. Good, "The population frequencies of species and the estimation of population parameters",
  Biometrika 40 (1953);
- A. Chao, "Estimating the population size for capture-recapture data with unequal catchability", Biometrics
  43 (1987), of which `_unseen` is the bias-corrected form;
- R. K. Colwell et al., "Models and estimators linking individual-based and sample-based rarefaction,
  extrapolation and comparison of assemblages", Journal of Plant Ecology 5 (2012), equation 18: `_more`;
- M. Böhme, "STADS: Software Testing as Species Discovery", ACM TOSEM 27 (2018), where tests are the samples.

Rounds are no random samples: they are told what is missing. So the estimate never ends a run by itself. It
takes a round that brought nothing, and each further one makes the estimate smaller.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from peripety.testgen.loop.state import RunState
    from peripety.testgen.model import Quality

__all__ = ["expected_gain", "is_gain_expected", "missing"]

_TESTS_OF_A_ROUND = 3
_ENOUGH = 1.0


def missing(quality: Quality | None) -> int | None:
    """How many mutants survive and targets are not covered; None when nothing can be measured."""
    if quality is None:
        return None
    score = quality.mutation
    survived, killed = (score.survived, score.killed) if score is not None else (0, 0)
    reachable = sum(coverage.reachable for coverage in quality.coverage)
    if not survived + killed + reachable:
        return None
    return survived + reachable - sum(coverage.covered for coverage in quality.coverage)


def is_gain_expected(state: RunState) -> bool | None:
    """Whether another round is expected to kill or cover something new; None when nothing can be measured."""
    left = missing(state.quality)
    if left is None:
        return None
    yields = [_yield(state, [test.test_id for test in tests]) for tests in state.made.values()]
    idle = next((number for number, amount in enumerate(reversed(yields)) if amount), len(yields))
    if not left or not idle:
        return bool(left)
    vectors = [_reached(state, test.test_id) for test in state.written]
    floor = [_reached(state, test.test_id) for test in state.tests.values() if test.is_combinatorial]
    known = frozenset[str]().union(*floor)
    gain = expected_gain([vector for vector in vectors if vector], known, left)
    return gain / (1 + idle) >= _ENOUGH


def expected_gain(vectors: Sequence[Collection[str]], known: Collection[str], left: int) -> float:
    """How many mutants and targets another round is expected to reach for the first time.

    Args:
        vectors: what each test reaches.
        known: what is reached without them, which says nothing about them.
        left: how many mutants and targets nothing has reached.
    """
    samples = len(vectors)
    if not samples:
        return float(left)
    seen = Counter(element for vector in vectors for element in vector if element not in known)
    times = Counter(seen.values())
    return _more(min(_unseen(samples, times[1], times[2]), left), samples, times[1])


def _unseen(samples: int, once: int, twice: int) -> float:
    """How many were not seen at all, where so many were seen once and twice."""
    return (samples - 1) / samples * once * (once - 1) / (2 * (twice + 1))


def _more(unseen: float, samples: int, once: int) -> float:
    """How many of the unseen a round would show."""
    if not unseen:
        return 0.0
    return float(unseen * (1 - (1 - once / (samples * unseen + once)) ** _TESTS_OF_A_ROUND))


def _yield(state: RunState, test_ids: Sequence[str]) -> int:
    verdicts = [state.verdicts[test_id] for test_id in test_ids if test_id in state.verdicts]
    return sum(len(verdict.new_kills) + len(verdict.new_coverage) for verdict in verdicts)


def _reached(state: RunState, test_id: str) -> frozenset[str]:
    verdict = state.verdicts.get(test_id)
    return frozenset() if verdict is None else verdict.examined.kills | verdict.examined.covered
