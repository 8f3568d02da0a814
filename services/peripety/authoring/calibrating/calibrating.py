"""Search for numbers at which random play loses about half of its runs, through every loss condition.

Only the random persona is simulated. It is cheap, and its win rate predicts the rates of planning personas:
where random play wins a few runs in a hundred, planning wins most and loses some. Both engine backends give
the same results, so the search finds the same numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.authoring.calibrating.aims import Aim
    from peripety.authoring.calibrating.measures import Measures

__all__ = ["calibrated"]

_TRIALS, _RUNS = 14, 512
_NEAR = 0.06
_LEAST_SHARE = 0.03
"""The minimum share of losses for each loss condition."""
_LARGEST_STEP = 1.5
_QUICKLY, _SLOWLY, _HARDLY = 0.4, 0.2, 0.12
"""Exponents of the correction ratio: for all buffers together, for each buffer, for the goals."""
_FEW = 0.005
_BUFFERS = (6.0, 60.0)
_PRESSURES = (0.4, 3.0)
_TARGETS = (6.0, 120.0)
_DUE = (0.05, 0.9)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Result of random play on one candidate.

    Attributes:
        spec: the candidate.
        lost: the share of lost runs.
        won: the share of won runs.
        causes: the share of the losses of each loss condition, in order.
    """

    spec: dict[str, Any]
    lost: float
    won: float
    causes: tuple[float, ...]


def calibrated(measures: Measures, aim: Aim, spec_of: Callable[[Measures], dict[str, Any]]) -> dict[str, Any]:
    """Return the specification that comes closest to the target.

    Args:
        measures: the starting point.
        aim: the target for random play.
        spec_of: builds the specification for the given measures. Its first loss conditions are those of the
            buffers, in order; the deadline follows, if there is one.
    """
    trials: list[_Trial] = []
    for _ in range(_TRIALS):
        trials.append(_trial(spec_of(measures)))
        if not _missed_by(aim, trials[-1]):
            break
        measures = _moved(measures, aim, trials[-1])
    return min(trials, key=lambda trial: _missed_by(aim, trial)).spec


def _trial(spec: dict[str, Any]) -> _Trial:
    report = sim.compile(json.dumps(spec, ensure_ascii=False)).dry_run(runs=_RUNS)
    causes = (report.losses[loss["id"]] / max(report.lost, 1) for loss in spec["loss_conditions"])
    return _Trial(spec, report.fail_rate, report.won / report.runs, tuple(causes))


def _missed_by(aim: Aim, trial: _Trial) -> float:
    """Return the distance of a trial from the target; 0 for a match."""
    rate = max(abs(trial.lost - aim.lost) - _NEAR, 0)
    causes = sum(max(_LEAST_SHARE - share, 0) for share in trial.causes)
    too_few = max(aim.least_won - trial.won, 0) / aim.least_won
    too_many = max(trial.won - aim.most_won, 0)
    return 4 * rate + causes + too_few / 2 + too_many


def _moved(measures: Measures, aim: Aim, trial: _Trial) -> Measures:
    """Return measures corrected towards the target."""
    longer = 1.0
    if not aim.least_won <= trial.won <= aim.most_won:
        longer = _step((trial.won + _FEW) / ((aim.least_won + aim.most_won) / 2 + _FEW), _HARDLY)
    overall = _step(trial.lost / aim.lost, _QUICKLY) * longer**0.5
    fair = 1 / len(trial.causes)
    by_cause = [_step((share + 0.01) / fair, _SLOWLY) for share in trial.causes]
    has_deadline = len(by_cause) > len(measures.buffers)
    return replace(
        measures,
        buffers={
            name: _within(steps * overall * own, _BUFFERS)
            for (name, steps), own in zip(measures.buffers.items(), by_cause, strict=False)
        },
        pressures={
            name: _within(pressure / own, _PRESSURES)
            for (name, pressure), own in zip(measures.pressures.items(), by_cause, strict=False)
        },
        target=_within(measures.target * longer, _TARGETS),
        due=_within(measures.due / by_cause[-1], _DUE) if has_deadline else measures.due,
    )


def _step(ratio: float, power: float) -> float:
    return _within(max(ratio, 0.01) ** power, (1 / _LARGEST_STEP, _LARGEST_STEP))


def _within(number: float, bounds: tuple[float, float]) -> float:
    least, most = bounds
    return min(max(number, least), most)
