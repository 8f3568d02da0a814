"""Drift: the mean change of quantities away from a loss per turn, relative to their initial distance from it.

A scenario whose quantities only improve is not a challenge, whatever its present fail rate. So every
quantity that a loss condition or decay reads is followed from the first state of a run to the last. The
direction away from a loss follows from the comparisons in loss conditions. Decay is harmful to quantities
that they do not read.

A quantity has no drift in these cases: both ends of its range may lose, it occurs only in equalities, or
its comparison holds at the start. In the last case the quantity is a task, such as a goal with a deadline,
and has no distance from a loss. From version 1.1 on, neither has a quantity that a win needs to move away
from a loss: it is meant to. A win needs it if the win condition reads it, or the condition of an action that
writes what a win needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from peripety import engine
from peripety.engine.lowering import lower
from peripety.errors import Finding, PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.engine import DryRunReport, Program


RISING, FALLING = 1, -1

_WHEN_TRUE = {"<": FALLING, "<=": FALLING, ">": RISING, ">=": RISING}
_MATCHING = frozenset({"==", "!=", "===", "!==", "in", "%"})
_GATHERING = frozenset({"and", "or", "!!", "+", "min", "max"})


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """Quantity in a condition.

    Attributes:
        path: its path, as effects write it.
        direction: the direction that makes the condition hold: `RISING` or `FALLING`.
        against: the expression on the other side; None if the quantity is only a part of its side.
    """

    path: str
    direction: int
    against: Any = None


def find_compared_values(logic: Any, direction: int = RISING) -> Iterator[ComparedValue]:
    """Yield the quantities of an expression, with the direction that makes it larger, or true."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return
    ((operator, given),) = logic.items()
    arguments = given if isinstance(given, list) else [given]
    if operator == "var":
        if arguments and isinstance(arguments[0], str):
            yield ComparedValue(engine.variable_to_path(arguments[0]), direction)
    elif operator in _WHEN_TRUE:
        for left, right in pairwise(arguments):
            yield from _find_in_comparison(left, right, direction * _WHEN_TRUE[operator])
            yield from _find_in_comparison(right, left, -direction * _WHEN_TRUE[operator])
    else:
        for index, argument in enumerate(arguments):
            way = _operand_direction(operator, index, arguments)
            if way:
                yield from find_compared_values(argument, direction * way)


def _operand_direction(operator: str, index: int, arguments: list[Any]) -> int:
    """Return the effect of a larger operand on an operation: 1 raises it, -1 lowers it, 0 is unknown."""
    if operator in _GATHERING:
        return RISING
    if operator == "!":
        return FALLING
    if operator == "-":
        return FALLING if index > 0 or len(arguments) == 1 else RISING
    if operator == "*":
        return _sign_of_product([*arguments[:index], *arguments[index + 1 :]])
    return 0


def _sign_of_product(factors: list[Any]) -> int:
    """Return the sign of a product; 0 if it is 0, or unknown because a factor is not a literal."""
    sign = 1
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not factor:
            return 0
        sign *= 1 if factor > 0 else -1
    return sign


def harmful_directions(found: Iterable[ComparedValue]) -> dict[str, int]:
    """Return the direction of each path towards its condition, 0 for both directions."""
    votes: dict[str, set[int]] = {}
    for reading in found:
        votes.setdefault(reading.path, set()).add(reading.direction)
    return {path: ways.pop() if len(ways) == 1 else 0 for path, ways in votes.items()}


def list_numbers(state: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of an initial state by path, in document order, without arrays."""
    return {engine.format_path(path): value for path, value in _iter_numbers(state, ("state",))}


def find_matched_paths(spec: dict[str, Any]) -> frozenset[str]:
    """Return the paths in equalities, membership tests or remainders of any rule."""
    return frozenset(_iter_matched(spec, within=False))


def _find_in_comparison(side: Any, other: Any, direction: int) -> Iterator[ComparedValue]:
    is_quantity = isinstance(side, dict) and "var" in side
    for reading in find_compared_values(side, direction):
        yield ComparedValue(reading.path, direction, other) if is_quantity else reading


def _iter_numbers(node: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _iter_numbers(value, (*place, key))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*place, key), value


def _iter_matched(node: Any, *, within: bool) -> Iterator[str]:
    """Yield the variables in equalities below a node; any part of a document may be a rule."""
    if isinstance(node, list):
        for item in node:
            yield from _iter_matched(item, within=within)
    elif isinstance(node, dict):
        for key, value in node.items():
            if within and key == "var":
                name = value[0] if isinstance(value, list) and value else value
                if isinstance(name, str):
                    yield engine.variable_to_path(name)
            else:
                yield from _iter_matched(value, within=within or key in _MATCHING)


MAX_POSITIVE_DRIFT = 0.05
"""The default limit of a specification."""

_RESOLUTION = 2**20
"""The resolution of a change, in parts of its scale."""

_watched_by_program: WeakKeyDictionary[Program, dict[str, tuple[int, float]]] = WeakKeyDictionary()
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


def watched_paths(program: Program) -> dict[str, float]:
    """Return the paths whose drift is measured, each with its initial distance from a loss."""
    return {path: scale for path, (_, scale) in _cached_watched_paths(program).items()}


def measure_drift(program: Program, report: DryRunReport) -> tuple[Drift, ...]:
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
        Drift(path, away * moves[path] / _RESOLUTION / max(report.turns, 1), limit)
        for path, (away, _) in _cached_watched_paths(program).items()
    )


def find_excessive_drift(found: Sequence[Drift]) -> Iterator[Finding]:
    """Yield a finding for each drift above its limit."""
    for drift in found:
        if drift.per_turn > drift.limit:
            message = (
                f"{drift.path} moves away from losing by {drift.per_turn:.1%} of its first distance in each"
                f" turn, and at most {drift.limit:.1%} are allowed; let decay and events take more, let"
                " actions give less, or set negativity_budget.max_positive_drift if it is meant to grow"
            )
            yield Finding("POSITIVE_DRIFT", "/negativity_budget/max_positive_drift", message)


def _cached_watched_paths(program: Program) -> dict[str, tuple[int, float]]:
    """Return the direction away from a loss, and the scale, of each watched path."""
    watched = _watched_by_program.get(program)
    if watched is None:
        watched = _watched_by_program[program] = _candidate_paths(program.spec)
    return watched


def _candidate_paths(spec: dict[str, Any]) -> dict[str, tuple[int, float]]:
    found = list(chain.from_iterable(find_compared_values(loss["when"]) for loss in spec["loss_conditions"]))
    toward = harmful_directions(found)
    for path, amount in spec["negativity_budget"].get("decay_per_turn", {}).items():
        toward.setdefault(engine.format_path(engine.parse_path(path)), FALLING if amount > 0 else RISING)
    world = engine.parse_data(
        {
            "state": spec["state"],
            "params": {},
            "derives": {},
            "turn": 1,
            "entities": spec.get("entities", []),
        },
    )
    goals = _goal_directions(spec)
    watched = {}
    for path, value in list_numbers(spec["state"]).items():
        if not toward.get(path) or -toward[path] in goals.get(path, ()):
            continue
        scale = _distance_from_loss(value, [reading for reading in found if reading.path == path], world)
        if scale:
            watched[path] = (-toward[path], scale)
    return watched


def _goal_directions(spec: dict[str, Any]) -> dict[str, set[int]]:
    """Return the directions of each path towards a win, from version 1.1 on."""
    goals: dict[str, set[int]] = {}
    if spec["spec_version"] == "1.0":
        return goals
    needed: list[Any] = [win["when"] for win in spec.get("win_conditions", [])]
    lowered = lower(spec).spec
    wins = [win["when"] for win in lowered.get("win_conditions", [])]
    read = set(chain.from_iterable(map(engine.list_read_paths, wins)))
    left = [variant for action in lowered["actions"] for variant in engine.list_variants(action)]
    while useful := [action for action in left if engine.are_related(list_written_paths(action), read)]:
        left = [action for action in left if action not in useful]
        needed += [action["preconditions"] for action in useful]
        read.update(chain.from_iterable(engine.list_read_paths(action["preconditions"]) for action in useful))
    for reading in chain.from_iterable(map(find_compared_values, needed)):
        goals.setdefault(reading.path, set()).add(reading.direction)
    return goals


def list_written_paths(rule: dict[str, Any]) -> list[str]:
    """Return the paths that the effects of a rule write, at once or later."""
    paths = [effect["path"] for effect in rule["effects"] if "path" in effect]
    return [
        *paths,
        *chain.from_iterable(list_written_paths(one) for one in rule["effects"] if "effects" in one),
    ]


def _distance_from_loss(value: float, found: Iterable[ComparedValue], world: engine.RuleData) -> float | None:
    """Return the smallest distance of a quantity from a loss; None if it is beyond all of them."""
    distances = [_distance_to_comparison(value, reading, world) for reading in found]
    ahead = [distance for distance in distances if distance is None or distance >= 0]
    if distances and not ahead:
        return None
    return min((distance for distance in ahead if distance), default=max(abs(value), 1.0))


def _distance_to_comparison(value: float, reading: ComparedValue, world: engine.RuleData) -> float | None:
    """Return the distance until a comparison holds, negative if it holds; None if unknown."""
    if reading.against is None:
        return None
    other = reading.against
    if not isinstance(other, (int, float)):
        try:
            other = engine.evaluate(other, world)
        except PeripetyError:
            return None
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        return None
    return (other - value) * reading.direction
