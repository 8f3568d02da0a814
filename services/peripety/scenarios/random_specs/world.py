"""State variables of a random specification, and conditions on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.scenarios.random_specs.frame import Frame
    from peripety.scenarios.random_specs.source import Source

__all__ = ["Flag", "Gauge", "Goal", "Guard", "Mode", "Row", "Stock", "World", "tidy", "var"]

Json = dict[str, Any]

_PLACES = (
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


def tidy(number: float) -> float:
    """Round a number to thousandths; return an integer if it is whole."""
    rounded = round(number, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def var(path: str) -> Json:
    """Return the expression that reads a path."""
    return {"var": path}


@dataclass(frozen=True, slots=True)
class Guard:
    """Condition of a rule.

    Attributes:
        logic: returns the expression; called when all numbers are final.
        likely: the estimated probability that it holds.
    """

    logic: Callable[[], Json]
    likely: float

    def or_else(self, other: Guard) -> Guard:
        """Return the disjunction with another condition."""
        return Guard(lambda: {"or": [self.logic(), other.logic()]}, max(self.likely, other.likely))


@dataclass(slots=True)
class Gauge:
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

    def steps(self, count: float) -> float:
        """Return a number of steps as an amount."""
        return tidy(count * self.unit)

    def level(self, share: float) -> float:
        """Return the value at a remaining share of the distance; above 1 is beyond the start."""
        return tidy(self.start - self.sense * self.steps((1 - share) * self.distance))

    def within(self, share: float, likely: float) -> Guard:
        """Return the condition that at most a share of the distance remains."""
        operator = "<=" if self.sense > 0 else ">="
        return Guard(lambda: {operator: [var(self.path), self.level(share)]}, likely)

    def beyond(self, share: float, likely: float) -> Guard:
        """Return the condition that more than a share of the distance remains."""
        operator = ">" if self.sense > 0 else "<"
        return Guard(lambda: {operator: [var(self.path), self.level(share)]}, likely)


@dataclass(frozen=True, slots=True)
class Stock:
    """Counter that actions gather and spend; it has no loss condition."""

    path: str
    start: int

    def affords(self, amount: Any, likely: float = 0.7) -> Guard:
        """Return the condition that it is at least an amount."""
        return Guard(lambda: {">=": [var(self.path), amount]}, likely)

    def below(self, limit: int, likely: float = 0.8) -> Guard:
        """Return the condition that it is below a limit."""
        return Guard(lambda: {"<": [var(self.path), limit]}, likely)


@dataclass(frozen=True, slots=True)
class Flag:
    """Boolean, initially false; set by events alone, or by an action."""

    path: str
    by_events: bool

    def on(self) -> Guard:
        """Return the condition that it is set."""
        return Guard(lambda: var(self.path), 0.4)

    def off(self) -> Guard:
        """Return the condition that it is not set."""
        return Guard(lambda: {"!": [var(self.path)]}, 0.6)


@dataclass(frozen=True, slots=True)
class Mode:
    """Text with a few possible values; a patched one is in an object together with a number."""

    path: str
    options: tuple[str, ...]
    patched: bool

    def equals(self, option: str) -> Guard:
        """Return the condition that it has a value."""
        return Guard(lambda: {"==": [var(self.path), option]}, 1 / len(self.options))

    def differs(self, option: Any, likely: float) -> Guard:
        """Return the condition that it has another value."""
        return Guard(lambda: {"!=": [var(self.path), option]}, likely)

    @property
    def record(self) -> str:
        """Return the path of the object of a patched one."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Row:
    """Array of numbers or texts with a maximum length."""

    path: str
    of_texts: bool
    count: int
    room: int

    def filled(self) -> Guard:
        """Return the condition that it is not empty."""
        return Guard(lambda: {"!!": [var(self.path)]}, 0.8)

    def open(self) -> Guard:
        """Return the condition that it is not full."""
        return Guard(lambda: {"<": [self.length(), self.room]}, 0.8)

    def reaching(self, count: int) -> Guard:
        """Return the condition that it has at least a number of items."""
        return Guard(lambda: {">=": [self.length(), count]}, 0.7)

    def item(self, number: int) -> Any:
        """Return an item of its type."""
        return f"item_{number}" if self.of_texts else number

    def length(self) -> Json:
        """Return the expression for its length."""
        return {"reduce": [var(self.path), {"+": [var("accumulator"), 1]}, 0]}


@dataclass(slots=True)
class Goal:
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
class World:
    """State variables of a specification."""

    gauges: list[Gauge]
    stocks: list[Stock]
    flags: list[Flag]
    modes: list[Mode]
    rows: list[Row]
    goal: Goal | None

    @classmethod
    def laid_out(cls, source: Source, frame: Frame) -> World:
        """Draw the state variables.

        Args:
            source: the random draws.
            frame: the size, and whether there is a goal.
        """
        places = _Places(source)
        gauges = [
            Gauge(places.of("quantity"), source.pick((1, 1, -1)), source.pick(_UNITS))
            for _ in range(2 + source.below(2 + frame.size // 2))
        ]
        stocks = [
            Stock(places.of("stock"), source.between(4, 20))
            for _ in range(1 + source.below(1 + frame.size // 3))
        ]
        flags = [Flag(places.of("flag"), source.chance(50)) for _ in range(source.below(2 + frame.size // 4))]
        modes = [_mode(source, places) for _ in range(source.below(2 + frame.size // 5))]
        rows = [_row(source, places) for _ in range(source.below(2 + frame.size // 5))]
        goal = (
            Goal(places.of("progress"), tidy(source.between(1, 5) * source.pick(_UNITS)))
            if frame.winnable
            else None
        )
        return cls(gauges, stocks, flags, modes, rows, goal)

    def state(self) -> Json:
        """Return the initial state; called when all numbers are final."""
        tree: Json = {}
        for path, value in self._values():
            *parents, key = path.split(".")[1:]
            holder = tree
            for parent in parents:
                holder = holder.setdefault(parent, {})
            holder[key] = value
        return tree

    def paths(self) -> list[str]:
        """Return the paths of all variables."""
        return [path for path, _ in self._values()]

    def _values(self) -> Iterator[tuple[str, Any]]:
        yield from ((gauge.path, gauge.start) for gauge in self.gauges)
        yield from ((stock.path, stock.start) for stock in self.stocks)
        yield from ((flag.path, False) for flag in self.flags)
        yield from ((row.path, [row.item(number) for number in range(1, row.count + 1)]) for row in self.rows)
        yield from ((mode.path, mode.options[0]) for mode in self.modes)
        yield from ((f"{mode.record}.mark", 0) for mode in self.modes if mode.patched)
        if self.goal is not None:
            yield self.goal.path, 0


class _Places:
    """Generator of names and paths of variables."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._counts: dict[str, int] = {}

    def of(self, kind: str) -> str:
        """Return a new path for a kind."""
        return f"{self._source.pick(_PLACES)}.{self.name(kind)}"

    def name(self, kind: str) -> str:
        """Return a new name for a kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}_{self._counts[kind]}"


def _mode(source: Source, places: _Places) -> Mode:
    options = tuple(f"level_{number}" for number in range(1, source.between(2, 4) + 1))
    if source.chance(40):
        return Mode(f"{places.of('record')}.level", options, patched=True)
    return Mode(places.of("mode"), options, patched=False)


def _row(source: Source, places: _Places) -> Row:
    return Row(places.of("row"), source.chance(50), count=source.below(4), room=source.between(4, 8))
