"""What a count in a sample says of the rate behind it."""

from __future__ import annotations

import math
from enum import Enum

__all__ = ["Side", "interval", "side_of"]

INDIFFERENCE = 0.03
"""Rates this close to a threshold may be judged either way."""

ERROR = 0.01
"""How often the test may judge wrongly outside of that."""

_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_TAIL = 0.025
_DECISIVE = math.log((1 - ERROR) / ERROR)


class Side(Enum):
    """Where a rate lies beside a threshold."""

    BELOW = "below"
    ABOVE = "above"


def interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a rate: Wilson's, and Clopper and Pearson's where it happened never or always."""
    if total == 0:
        return 0.0, 1.0
    if count in {0, total}:
        bound = _TAIL ** (1 / total)
        return (bound, 1.0) if count else (0.0, 1 - bound)
    rate, z2 = count / total, _Z * _Z
    centre = rate + z2 / (2 * total)
    spread = _Z * math.sqrt(rate * (1 - rate) / total + z2 / (4 * total * total))
    return (centre - spread) / (1 + z2 / total), (centre + spread) / (1 + z2 / total)


def side_of(count: int, total: int, threshold: float) -> Side | None:
    """Wald's sequential probability ratio test; None while the sample does not decide.

    Args:
        count: how often it happened.
        total: in how many trials.
        threshold: the rate to compare with, more than 0 and at most 1.
    """
    # Next to 0 and 1 the two hypotheses move closer, so that both stay rates.
    low = threshold - min(INDIFFERENCE, threshold / 2)
    high = threshold + min(INDIFFERENCE, (1 - threshold) / 2)
    against = total - count
    if high == 1 and against:
        return Side.BELOW
    evidence = count * math.log(high / low)
    if against:
        evidence += against * math.log((1 - high) / (1 - low))
    if abs(evidence) < _DECISIVE:
        return None
    return Side.ABOVE if evidence > 0 else Side.BELOW
