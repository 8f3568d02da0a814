"""State variables of a random specification, conditions on them, and the skeleton around them.

The skeleton has the size and length, and everything besides state and rules. Draws come from a stream over
the engine's keyed random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from peripety import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Json = dict[str, Any]

_SIZES = 10
_DEFAULT_HORIZON = 50
_HORIZONS = (10, 12, 15, 15, 20, 20, 25, 30, 40, _DEFAULT_HORIZON, 60, 80)
_CLOCKS = (("1h", 1), ("2h", 2), ("6h", 6), ("PT12H", 12), ("1d", 24), ("P1D", 24), ("P1W", 168))
_DAY = 24


@dataclass(frozen=True, slots=True)
class SpecSkeleton:
    """Skeleton of a specification, chosen first.

    Attributes:
        size: 0 … 9; small sizes are more frequent.
        horizon: the maximum number of turns of a run.
        clock: the duration of a turn, as written; None for the engine's default of an hour.
        hours: the duration of a turn, in hours.
        winnable: True if there is a goal.
    """

    size: int
    horizon: int
    clock: str | None
    hours: int
    winnable: bool

    @classmethod
    def draw(cls, source: DrawStream) -> SpecSkeleton:
        """Draw a skeleton."""
        size = min(source.draw_below(_SIZES), source.draw_below(_SIZES))
        clock, hours = source.draw_option(_CLOCKS) if source.draw_chance(60) else (None, 1)
        return cls(size, source.draw_option(_HORIZONS), clock, hours, source.draw_chance(50))

    def format_duration(self, source: DrawStream, turns: int) -> str:
        """Return a number of turns as a duration."""
        hours = turns * self.hours
        if hours % _DAY == 0:
            return f"{hours // _DAY}d" if source.draw_chance(50) else f"P{hours // _DAY}D"
        return f"{hours}h" if source.draw_chance(50) else f"PT{hours}H"

    def draw_delay(self, source: DrawStream, turns: int) -> int | str:
        """Return a number of turns, as a number or as a duration."""
        return turns if source.draw_chance(50) else self.format_duration(source, turns)


def write_surroundings(source: DrawStream, world: StateVars, frame: SpecSkeleton) -> Json:
    """Return entities, clock, horizon and permissions; each of them is sometimes omitted."""
    written: Json = {}
    private = any(".private." in path for path in world.all_paths())
    if private or source.draw_chance(60):
        written["entities"] = _write_entities(source)
    if frame.clock is not None:
        written["clock"] = {"turn": frame.clock}
    if frame.horizon != _DEFAULT_HORIZON or source.draw_chance(50):
        written["horizon"] = frame.horizon
    if "entities" in written and source.draw_chance(40):
        written["visibility"] = _write_visibility(source, world)
    if source.draw_chance(40):
        written["narrator_scope"] = _write_narrator_scope(source, world)
    return written


def _write_entities(source: DrawStream) -> list[Json]:
    others = range(2, source.draw_between(2, 4))
    return [
        {"id": "entity_1", "name": "Entity 1", "playable": True},
        *({"id": f"entity_{number}", "kind": f"kind_{source.draw_between(1, 3)}"} for number in others),
    ]


def _write_visibility(source: DrawStream, world: StateVars) -> list[Json]:
    audience = source.draw_option(("public", "hidden", ["entity_1"]))
    return [{"path": source.draw_option(world.gauges).path, "to": audience}]


def _write_narrator_scope(source: DrawStream, world: StateVars) -> list[Json]:
    gauge = source.draw_option(world.gauges)
    written: list[Json] = [{"path": gauge.path, "ops": ["inc", "dec"], "max_magnitude": gauge.to_amount(1)}]
    return written + [{"path": flag.path, "ops": ["set"]} for flag in world.flags[:1]]


T = TypeVar("T")

MAX_INDEX = 2**32 - 1
"""The largest index under one seed; beyond it draws would repeat."""

_STREAM = "random_specs"


class DrawStream:
    """Draw stream of one specification, the same on every machine and backend.

    Args:
        seed: an unsigned 64-bit integer.
        index: the number of the specification, up to `MAX_INDEX`.
        stream: the name of the stream; streams are independent.
    """

    def __init__(self, seed: int, index: int, stream: str = _STREAM) -> None:
        self._seed = seed
        self._index = index
        self._stream = stream
        self._count = 0

    def draw_bits(self) -> int:
        """Draw 64 bits."""
        value = engine.draw(self._seed, self._stream, self._index, self._count)
        self._count += 1
        return value

    def draw_below(self, count: int) -> int:
        """Draw an integer from 0 to count - 1."""
        return ((self.draw_bits() >> 32) * count) >> 32

    def draw_between(self, least: int, most: int) -> int:
        """Draw an integer from a range, both ends included."""
        return least + self.draw_below(most - least + 1)

    def draw_chance(self, percent: int) -> bool:
        """Return True with a probability in per cent."""
        return self.draw_below(100) < percent

    def draw_option(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return options[self.draw_below(len(options))]

    def draw_order(self, options: Sequence[T]) -> list[T]:
        """Return the options in random order."""
        left = list(options)
        return [left.pop(self.draw_below(len(left))) for _ in range(len(left))]


_PARENT_PATHS = (
    "state",
    "state",
    "state",
    "state.group_1",
    "state.group_1.part_1",
    "state.group_2",
    "state.hidden",
    "state.private.entity_1",
)
_UNITS = (0.1, 0.2, 0.5, 1, 1, 1, 2, 5, 10)


def round_to_thousandths(number: float) -> float:
    """Round a number to thousandths; return an integer if it is whole."""
    rounded = round(number, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def read_path(path: str) -> Json:
    """Return the expression that reads a path."""
    return {"var": path}


@dataclass(frozen=True, slots=True)
class StateCondition:
    """Condition of a rule.

    Attributes:
        logic: returns the expression; called when all numbers are final.
        probability: the estimated probability that it holds.
    """

    logic: Callable[[], Json]
    probability: float

    def or_else(self, other: StateCondition) -> StateCondition:
        """Return the disjunction with another condition."""
        return StateCondition(
            lambda: {"or": [self.logic(), other.logic()]},
            max(self.probability, other.probability),
        )


@dataclass(slots=True)
class GaugeVar:
    """Number with a loss condition at one end of its range.

    Attributes:
        path: its path in the state.
        sense: 1 if it loses by being low, -1 by being high.
        unit: the size of one step; all moves are in steps.
        threat: steps towards a loss by the event that cannot be prevented.
        drain: steps towards a loss per turn without any rule.
        worst: maximum steps towards a loss in one turn.
        distance: steps between its start and its limit.
        start: its initial value.
    """

    path: str
    sense: int
    unit: float
    threat: int = 0
    drain: float = 0
    worst: float = 0
    distance: int = 0
    start: float = 0

    def to_amount(self, count: float) -> float:
        """Return a number of steps as an amount."""
        return round_to_thousandths(count * self.unit)

    def value_at(self, share: float) -> float:
        """Return the value at a remaining share of the distance; above 1 is beyond the start."""
        return round_to_thousandths(self.start - self.sense * self.to_amount((1 - share) * self.distance))

    def at_most_share(self, share: float, likely: float) -> StateCondition:
        """Return the condition that at most a share of the distance remains."""
        operator = "<=" if self.sense > 0 else ">="
        return StateCondition(lambda: {operator: [read_path(self.path), self.value_at(share)]}, likely)

    def more_than_share(self, share: float, likely: float) -> StateCondition:
        """Return the condition that more than a share of the distance remains."""
        operator = ">" if self.sense > 0 else "<"
        return StateCondition(lambda: {operator: [read_path(self.path), self.value_at(share)]}, likely)


@dataclass(frozen=True, slots=True)
class CounterVar:
    """Counter that actions gather and spend; it has no loss condition."""

    path: str
    start: int

    def at_least(self, amount: Any, likely: float = 0.7) -> StateCondition:
        """Return the condition that it is at least an amount."""
        return StateCondition(lambda: {">=": [read_path(self.path), amount]}, likely)

    def below(self, limit: int, likely: float = 0.8) -> StateCondition:
        """Return the condition that it is below a limit."""
        return StateCondition(lambda: {"<": [read_path(self.path), limit]}, likely)


@dataclass(frozen=True, slots=True)
class FlagVar:
    """Boolean, initially false; set by events alone, or by an action."""

    path: str
    by_events: bool

    def is_set(self) -> StateCondition:
        """Return the condition that it is set."""
        return StateCondition(lambda: read_path(self.path), 0.4)

    def is_clear(self) -> StateCondition:
        """Return the condition that it is not set."""
        return StateCondition(lambda: {"!": [read_path(self.path)]}, 0.6)


@dataclass(frozen=True, slots=True)
class ModeVar:
    """Text with a few possible values; a patched one is in an object together with a number."""

    path: str
    options: tuple[str, ...]
    patched: bool

    def equals(self, option: str) -> StateCondition:
        """Return the condition that it has a value."""
        return StateCondition(lambda: {"==": [read_path(self.path), option]}, 1 / len(self.options))

    def differs(self, option: Any, likely: float) -> StateCondition:
        """Return the condition that it has another value."""
        return StateCondition(lambda: {"!=": [read_path(self.path), option]}, likely)

    @property
    def record_path(self) -> str:
        """Return the path of the object of a patched one."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class ListVar:
    """Array of numbers or texts with a maximum length."""

    path: str
    of_texts: bool
    count: int
    capacity: int

    def not_empty(self) -> StateCondition:
        """Return the condition that it is not empty."""
        return StateCondition(lambda: {"!!": [read_path(self.path)]}, 0.8)

    def not_full(self) -> StateCondition:
        """Return the condition that it is not full."""
        return StateCondition(lambda: {"<": [self.length_expression(), self.capacity]}, 0.8)

    def at_least(self, count: int) -> StateCondition:
        """Return the condition that it has at least a number of items."""
        return StateCondition(lambda: {">=": [self.length_expression(), count]}, 0.7)

    def draw_item(self, number: int) -> Any:
        """Return an item of its type."""
        return f"item_{number}" if self.of_texts else number

    def length_expression(self) -> Json:
        """Return the expression for its length."""
        return {"reduce": [read_path(self.path), {"+": [read_path("accumulator"), 1]}, 0]}


@dataclass(slots=True)
class GoalVar:
    """Number with a win condition.

    Attributes:
        path: its path; it starts at 0.
        step: the increase by the action for the goal.
        target: the value that wins.
        deadline: the turn by which the target must be reached, or the run is lost.
    """

    path: str
    step: float
    target: float = 0.0
    deadline: int | None = None


@dataclass(slots=True)
class StateVars:
    """State variables of a specification."""

    gauges: list[GaugeVar]
    stocks: list[CounterVar]
    flags: list[FlagVar]
    modes: list[ModeVar]
    lists: list[ListVar]
    goal: GoalVar | None

    @classmethod
    def draw(cls, source: DrawStream, frame: SpecSkeleton) -> StateVars:
        """Draw the state variables.

        Args:
            source: the random draws.
            frame: the size, and whether there is a goal.
        """
        places = _PathGenerator(source)
        gauges = [
            GaugeVar(places.new_path("quantity"), source.draw_option((1, 1, -1)), source.draw_option(_UNITS))
            for _ in range(2 + source.draw_below(2 + frame.size // 2))
        ]
        stocks = [
            CounterVar(places.new_path("stock"), source.draw_between(4, 20))
            for _ in range(1 + source.draw_below(1 + frame.size // 3))
        ]
        flags = [
            FlagVar(places.new_path("flag"), source.draw_chance(50))
            for _ in range(source.draw_below(2 + frame.size // 4))
        ]
        modes = [_draw_mode(source, places) for _ in range(source.draw_below(2 + frame.size // 5))]
        rows = [_draw_list(source, places) for _ in range(source.draw_below(2 + frame.size // 5))]
        goal = (
            GoalVar(
                places.new_path("progress"),
                round_to_thousandths(source.draw_between(1, 5) * source.draw_option(_UNITS)),
            )
            if frame.winnable
            else None
        )
        return cls(gauges, stocks, flags, modes, rows, goal)

    def build_state(self) -> Json:
        """Return the initial state; called when all numbers are final."""
        tree: Json = {}
        for path, value in self._values():
            *parents, key = path.split(".")[1:]
            holder = tree
            for parent in parents:
                holder = holder.setdefault(parent, {})
            holder[key] = value
        return tree

    def all_paths(self) -> list[str]:
        """Return the paths of all variables."""
        return [path for path, _ in self._values()]

    def _values(self) -> Iterator[tuple[str, Any]]:
        yield from ((gauge.path, gauge.start) for gauge in self.gauges)
        yield from ((stock.path, stock.start) for stock in self.stocks)
        yield from ((flag.path, False) for flag in self.flags)
        yield from (
            (row.path, [row.draw_item(number) for number in range(1, row.count + 1)]) for row in self.lists
        )
        yield from ((mode.path, mode.options[0]) for mode in self.modes)
        yield from ((f"{mode.record_path}.mark", 0) for mode in self.modes if mode.patched)
        if self.goal is not None:
            yield self.goal.path, 0


class _PathGenerator:
    """Generator of names and paths of variables."""

    def __init__(self, source: DrawStream) -> None:
        self._source = source
        self._counts: dict[str, int] = {}

    def new_path(self, kind: str) -> str:
        """Return a new path for a kind."""
        return f"{self._source.draw_option(_PARENT_PATHS)}.{self.new_name(kind)}"

    def new_name(self, kind: str) -> str:
        """Return a new name for a kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}_{self._counts[kind]}"


def _draw_mode(source: DrawStream, places: _PathGenerator) -> ModeVar:
    options = tuple(f"level_{number}" for number in range(1, source.draw_between(2, 4) + 1))
    if source.draw_chance(40):
        return ModeVar(f"{places.new_path('record')}.level", options, patched=True)
    return ModeVar(places.new_path("mode"), options, patched=False)


def _draw_list(source: DrawStream, places: _PathGenerator) -> ListVar:
    return ListVar(
        places.new_path("row"),
        source.draw_chance(50),
        count=source.draw_below(4),
        capacity=source.draw_between(4, 8),
    )
