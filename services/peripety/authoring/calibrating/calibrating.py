"""A search for numbers under which luck alone loses about every other run, by every cause there is.

Only the random persona plays. It costs next to nothing, and what it wins tells enough of how those fare who
think: where luck wins a few runs in a hundred, thinking wins most, and loses some. Both cores play the same,
so that the same numbers come out.
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
"""The part of all losses that each cause should have at least."""
_LARGEST_STEP = 1.5
_QUICKLY, _SLOWLY, _HARDLY = 0.4, 0.2, 0.12
"""Powers of the ratio by which a figure is off: for all buffers together, for each alone, for the goals."""
_FEW = 0.005
_BUFFERS = (6.0, 60.0)
_PRESSURES = (0.4, 3.0)
_TARGETS = (6.0, 120.0)
_DUE = (0.05, 0.9)


@dataclass(frozen=True, slots=True)
class _Trial:
    """How luck alone fares.

    Attributes:
        spec: what was played.
        lost: the share of runs it loses.
        won: the share of runs it wins.
        causes: the part of the losses that each loss condition has, in their order.
    """

    spec: dict[str, Any]
    lost: float
    won: float
    causes: tuple[float, ...]


def calibrated(measures: Measures, aim: Aim, spec_of: Callable[[Measures], dict[str, Any]]) -> dict[str, Any]:
    """The specification whose numbers come nearest to what is wanted.

    Args:
        measures: what to begin with.
        aim: how luck alone should fare.
        spec_of: the specification that has such measures. Its first loss conditions are those of the
            buffers, in their order; one more is that of the deadline.
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
    """How far a trial is from what is wanted; 0 for not at all."""
    rate = max(abs(trial.lost - aim.lost) - _NEAR, 0)
    causes = sum(max(_LEAST_SHARE - share, 0) for share in trial.causes)
    too_few = max(aim.least_won - trial.won, 0) / aim.least_won
    too_many = max(trial.won - aim.most_won, 0)
    return 4 * rate + causes + too_few / 2 + too_many


def _moved(measures: Measures, aim: Aim, trial: _Trial) -> Measures:
    """Measures that bring a scenario nearer to what is wanted."""
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
