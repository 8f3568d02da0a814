"""Drift: the mean change of quantities away from a loss per turn, relative to their initial distance from it.

A scenario whose quantities only improve is not a challenge, whatever its present fail rate. So every quantity
that a loss condition or decay reads is followed from the first state of a run to the last. The direction away
from a loss follows from the comparisons in loss conditions. Decay is harmful to quantities that they do not
read.

A quantity has no drift in these cases: both ends of its range may lose, it occurs only in equalities, or its
comparison holds at the start. In the last case the quantity is a task, such as a goal with a deadline, and
has no distance from a loss.
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
"""The default limit of a specification."""

_UNITS = 2**20
"""The resolution of a change, in parts of its scale."""

_KNOWN: WeakKeyDictionary[Program, dict[str, tuple[int, float]]] = WeakKeyDictionary()
"""The cache of watched paths per program; they are requested repeatedly, and as slow to find as some runs."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Mean change of a quantity.

    Attributes:
        path: its path in the state.
        per_turn: mean change per turn away from a loss, relative to its initial distance from a loss.
        limit: the maximum.
    """

    path: str
    per_turn: float
    limit: float


def watched(program: Program) -> dict[str, float]:
    """Return the paths whose drift is measured, each with its initial distance from a loss."""
    return {path: scale for path, (_, scale) in _watched(program).items()}


def drifts(program: Program, report: DryRunReport) -> tuple[Drift, ...]:
    """Return the drift of each watched path, in the order of the state.

    Args:
        program: the scenario.
        report: detailed runs, with `watch=watched(program)`.
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
    """Yield a finding for each drift above its limit."""
    for drift in found:
        if drift.per_turn > drift.limit:
            message = (
                f"{drift.path} moves away from losing by {drift.per_turn:.1%} of its first distance in each"
                f" turn, and at most {drift.limit:.1%} are allowed; let decay and events take more, let"
                " actions give less, or raise max_positive_drift"
            )
            yield Finding("POSITIVE_DRIFT", "/negativity_budget/max_positive_drift", message)


def _watched(program: Program) -> dict[str, tuple[int, float]]:
    """Return the direction away from a loss, and the scale, of each watched path."""
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
    """Return the smallest distance of a quantity from a loss; None if it is beyond all of them."""
    distances = [_distance(value, reading, world) for reading in found]
    ahead = [distance for distance in distances if distance is None or distance >= 0]
    if distances and not ahead:
        return None
    return min((distance for distance in ahead if distance), default=max(abs(value), 1.0))


def _distance(value: float, reading: Reading, world: sim.Data) -> float | None:
    """Return the distance until a comparison holds, negative if it holds; None if unknown."""
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
