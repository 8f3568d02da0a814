"""How luck alone should fare, so that thinking wins most runs and still loses some.

The bounds come from playing some hundreds of scenarios with the planner. The more there is to lose by, the
more it gains by looking ahead; and of several goals, which all have to be reached, luck alone reaches few.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Aim", "aim"]

_MOST_CAUSES = 7
_SHORT = 14


@dataclass(frozen=True, slots=True)
class Aim:
    """What the random persona should come to.

    Attributes:
        lost: the share of runs it should lose.
        least_won: where it wins less, those who think win too little.
        most_won: where it wins more, those who think always win.
    """

    lost: float
    least_won: float
    most_won: float


def aim(causes: int, goals: int, horizon: int) -> Aim:
    """What to aim at.

    Args:
        causes: how many loss conditions there are.
        goals: how many goals have to be reached.
        horizon: how many turns there are; several goals take most of them.
    """
    causes = min(causes, _MOST_CAUSES)
    lost = 0.46 + 0.02 * causes
    if goals > 1:
        most = max(0.05 - 0.004 * (horizon - _SHORT), 0.014)
        return Aim(lost, 0.4 * most, most)
    most = 0.225 - 0.02 * causes
    return Aim(lost, 0.65 * most, most)
