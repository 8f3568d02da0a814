"""Calibration targets: results of the random persona at which planning wins most runs and still loses some.

The bounds were measured with the planner on some hundreds of scenarios. The more loss conditions there are,
the more planning helps. With several goals, which must all be reached, random play reaches few.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Aim", "aim"]

_MOST_CAUSES = 7
_SHORT = 14


@dataclass(frozen=True, slots=True)
class Aim:
    """Target results of the random persona.

    Attributes:
        lost: the target share of lost runs.
        least_won: the minimum share of won runs; below it, planning personas win too rarely.
        most_won: the maximum share of won runs; above it, planning personas always win.
    """

    lost: float
    least_won: float
    most_won: float


def aim(causes: int, goals: int, horizon: int) -> Aim:
    """Return the calibration target.

    Args:
        causes: the number of loss conditions.
        goals: the number of goals.
        horizon: the number of turns; several goals need most of them.
    """
    causes = min(causes, _MOST_CAUSES)
    lost = 0.46 + 0.02 * causes
    if goals > 1:
        most = max(0.05 - 0.004 * (horizon - _SHORT), 0.014)
        return Aim(lost, 0.4 * most, most)
    most = 0.225 - 0.02 * causes
    return Aim(lost, 0.65 * most, most)
