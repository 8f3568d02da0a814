"""Drift: by how much quantities move away from losing each turn, relative to how far from it they start.

A world in which what could lose a run only ever gets better is no danger, whatever its rate says today. So
what loss conditions or decay read is followed from the first state of a run to its last. Which way is away
from losing is read from the comparisons in loss conditions; decay wears down what they do not read.

A quantity has no drift when it may lose a run at either end of its range, when nothing but its being equal to
something is asked, or when its comparison holds at the start already: a task that is still to be done, such
as a goal that is missed unless it is reached by some turn, has no distance from losing to move away from.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from peripety import sim
from peripety.errors import Finding, PeripetyError
from peripety.scenarios.reading import FALLING, RISING, directions, numbers, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.scenarios.reading import Reading
    from peripety.sim import DryRunReport, Program

__all__ = ["MAX_POSITIVE_DRIFT", "Drift", "drift_findings", "drifts", "watched"]

MAX_POSITIVE_DRIFT = 0.05
"""The limit of a specification that gives none."""

_UNITS = 2**20
"""A move is counted in so many parts of its scale."""

_KNOWN: WeakKeyDictionary[Program, dict[str, tuple[int, float]]] = WeakKeyDictionary()
"""What is watched of programs that are in use: asked for more than once, and as slow to find as some runs."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How a quantity moves, on average.

    Attributes:
        path: where it is in the state.
        per_turn: mean change in a turn away from losing, in parts of its first distance from losing.
        limit: the most that is allowed.
    """

    path: str
    per_turn: float
    limit: float


def watched(program: Program) -> dict[str, float]:
    """The paths whose drift is measured, each with its distance from losing at the start."""
    return {path: scale for path, (_, scale) in _watched(program).items()}


def drifts(program: Program, report: DryRunReport) -> tuple[Drift, ...]:
    """The drift of each path that is watched, in the order of the state.

    Args:
        program: the scenario.
        report: of runs that were counted in detail, with `watch=watched(program)`.
    """
    if report.detail is None:
        return ()
    limit = program.spec["negativity_budget"].get("max_positive_drift", MAX_POSITIVE_DRIFT)
    moves = report.detail.moves
    return tuple(
        Drift(path, away * moves[path] / _UNITS / max(report.turns, 1), limit)
        for path, (away, _) in _watched(program).items()
    )


def drift_findings(found: Sequence[Drift]) -> Iterator[Finding]:
    """What is wrong with the drifts that are above their limit."""
    for drift in found:
        if drift.per_turn > drift.limit:
            message = (
                f"{drift.path} moves away from losing by {drift.per_turn:.1%} of its first distance in each"
                f" turn, and at most {drift.limit:.1%} are allowed; let decay and events take more, let"
                " actions give less, or raise max_positive_drift"
            )
            yield Finding("POSITIVE_DRIFT", "/negativity_budget/max_positive_drift", message)


def _watched(program: Program) -> dict[str, tuple[int, float]]:
    """For each path that is watched: the way that leads away from losing, and the scale."""
    watched = _KNOWN.get(program)
    if watched is None:
        watched = _KNOWN[program] = _to_watch(program.spec)
    return watched


def _to_watch(spec: dict[str, Any]) -> dict[str, tuple[int, float]]:
    found = list(chain.from_iterable(readings(loss["when"]) for loss in spec["loss_conditions"]))
    toward = directions(found)
    for path, amount in spec["negativity_budget"].get("decay_per_turn", {}).items():
        toward.setdefault(sim.format_path(sim.parse_path(path)), FALLING if amount > 0 else RISING)
    world = sim.data(
        {
            "state": spec["state"],
            "params": {},
            "derives": {},
            "turn": 1,
            "entities": spec.get("entities", []),
        }
    )
    watched = {}
    for path, value in numbers(spec["state"]).items():
        if not toward.get(path):
            continue
        scale = _scale(value, [reading for reading in found if reading.path == path], world)
        if scale:
            watched[path] = (-toward[path], scale)
    return watched


def _scale(value: float, found: Iterable[Reading], world: sim.Data) -> float | None:
    """How far from losing a quantity is: the least of its distances; None when it is beyond all of them."""
    distances = [_distance(value, reading, world) for reading in found]
    ahead = [distance for distance in distances if distance is None or distance >= 0]
    if distances and not ahead:
        return None
    return min((distance for distance in ahead if distance), default=max(abs(value), 1.0))


def _distance(value: float, reading: Reading, world: sim.Data) -> float | None:
    """How far a comparison is from holding, negative where it does; None where that cannot be told."""
    if reading.against is None:
        return None
    other = reading.against
    if not isinstance(other, (int, float)):
        try:
            other = sim.evaluate(other, world)
        except PeripetyError:
            return None
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        return None
    return (other - value) * reading.direction
