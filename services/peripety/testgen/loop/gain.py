"""Expected gain of another round, estimated from the gains of earlier rounds.

The estimators are those for unseen species: killed mutants and covered targets are species, tests are
samples. The number of species that a few more samples would show for the first time follows from the number
of species that were seen once and twice:

- I. J. Good, "The population frequencies of species and the estimation of population parameters", Biometrika
  40 (1953);
- A. Chao, "Estimating the population size for capture-recapture data with unequal catchability", Biometrics
  43 (1987); `_unseen` is its bias-corrected form;
- R. K. Colwell et al., "Models and estimators linking individual-based and sample-based rarefaction,
  extrapolation and comparison of assemblages", Journal of Plant Ecology 5 (2012), equation 18: `_more`;
- M. Böhme, "STADS: Software Testing as Species Discovery", ACM TOSEM 27 (2018), where tests are the samples.

Rounds are not random samples, because their prompts list the gaps. So the estimate never ends a run by
itself: that takes a round without any gain, and each further one makes the estimate smaller.
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
    """Return the number of surviving mutants and uncovered targets; None if nothing can be measured."""
    if quality is None:
        return None
    score = quality.mutation
    survived, killed = (score.survived, score.killed) if score is not None else (0, 0)
    reachable = sum(coverage.reachable for coverage in quality.coverage)
    if not survived + killed + reachable:
        return None
    return survived + reachable - sum(coverage.covered for coverage in quality.coverage)


def is_gain_expected(state: RunState) -> bool | None:
    """Return True if another round is expected to add something; None if nothing can be measured."""
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
    """Return the number of mutants and targets that another round is expected to reach first.

    Args:
        vectors: the set that each test reaches.
        known: the set that is reached without them; it is excluded from the estimate.
        left: the number of mutants and targets that no test reaches.
    """
    samples = len(vectors)
    if not samples:
        return float(left)
    seen = Counter(element for vector in vectors for element in vector if element not in known)
    times = Counter(seen.values())
    return _more(min(_unseen(samples, times[1], times[2]), left), samples, times[1])


def _unseen(samples: int, once: int, twice: int) -> float:
    """Return the estimated number of unseen species, from those seen once and twice."""
    return (samples - 1) / samples * once * (once - 1) / (2 * (twice + 1))


def _more(unseen: float, samples: int, once: int) -> float:
    """Return the expected number of unseen species that a round would show."""
    if not unseen:
        return 0.0
    return float(unseen * (1 - (1 - once / (samples * unseen + once)) ** _TESTS_OF_A_ROUND))


def _yield(state: RunState, test_ids: Sequence[str]) -> int:
    verdicts = [state.verdicts[test_id] for test_id in test_ids if test_id in state.verdicts]
    return sum(len(verdict.new_kills) + len(verdict.new_coverage) for verdict in verdicts)


def _reached(state: RunState, test_id: str) -> frozenset[str]:
    verdict = state.verdicts.get(test_id)
    return frozenset() if verdict is None else verdict.examined.kills | verdict.examined.covered
