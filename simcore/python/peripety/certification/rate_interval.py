"""Statistics of a rate: confidence interval and sequential test."""

from __future__ import annotations

import math
from enum import Enum

from peripety.certification.gate_thresholds import ERROR_RATE, INDIFFERENCE_ZONE

_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_TAIL = 0.025
_DECISIVE = math.log((1 - ERROR_RATE) / ERROR_RATE)


class ThresholdSide(Enum):
    """Side of a threshold."""

    BELOW = "below"
    ABOVE = "above"


def rate_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate: Wilson, or Clopper-Pearson for a count of none or all."""
    if total == 0:
        return 0.0, 1.0
    if count in {0, total}:
        bound = _TAIL ** (1 / total)
        return (bound, 1.0) if count else (0.0, 1 - bound)
    rate, z2 = count / total, _Z * _Z
    centre = rate + z2 / (2 * total)
    spread = _Z * math.sqrt(rate * (1 - rate) / total + z2 / (4 * total * total))
    return (centre - spread) / (1 + z2 / total), (centre + spread) / (1 + z2 / total)


def compare_to_threshold(count: int, total: int, threshold: float) -> ThresholdSide | None:
    """Return the side of a rate by Wald's sequential probability ratio test; None if it does not decide yet.

    Args:
        count: the number of occurrences.
        total: the number of trials.
        threshold: the threshold, above 0 and at most 1.
    """
    # Near 0 and 1 the hypotheses are closer to the threshold, so that both remain rates.
    low = threshold - min(INDIFFERENCE_ZONE, threshold / 2)
    high = threshold + min(INDIFFERENCE_ZONE, (1 - threshold) / 2)
    against = total - count
    if high == 1 and against:
        return ThresholdSide.BELOW
    evidence = count * math.log(high / low)
    if against:
        evidence += against * math.log((1 - high) / (1 - low))
    if abs(evidence) < _DECISIVE:
        return None
    return ThresholdSide.ABOVE if evidence > 0 else ThresholdSide.BELOW
