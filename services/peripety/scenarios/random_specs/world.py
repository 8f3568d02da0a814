"""What stands in the state of a random specification, and what conditions say of it."""

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
    """A number as a person would write it: thousandths at most, and no fraction that is none."""
    rounded = round(number, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def var(path: str) -> Json:
    """The expression that reads a path."""
    return {"var": path}


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of a rule.

    Attributes:
        logic: writes the expression, once all numbers stand.
        likely: how often it holds, as a guess.
    """

    logic: Callable[[], Json]
    likely: float

    def or_else(self, other: Guard) -> Guard:
        """That this or another condition holds."""
        return Guard(lambda: {"or": [self.logic(), other.logic()]}, max(self.likely, other.likely))


@dataclass(slots=True)
class Gauge:
    """A number that loses a run at one end of its range.

    Attributes:
        path: where it stands.
        sense: 1 when it loses by being low, -1 by being high.
        unit: how much one step is; all moves are steps.
        threat: steps towards losing that an event takes which nothing prevents.
        drain: steps towards losing that each turn takes by itself.
        worst: most steps towards losing in one turn.
        distance: steps between its start and its edge.
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
        """So many steps, as a number to write."""
        return tidy(count * self.unit)

    def level(self, share: float) -> float:
        """The value at which so much of the distance to its edge is left; more than 1 is beyond its start."""
        return tidy(self.start - self.sense * self.steps((1 - share) * self.distance))

    def within(self, share: float, likely: float) -> Guard:
        """That no more than so much of its distance is left."""
        operator = "<=" if self.sense > 0 else ">="
        return Guard(lambda: {operator: [var(self.path), self.level(share)]}, likely)

    def beyond(self, share: float, likely: float) -> Guard:
        """That more than so much of its distance is left."""
        operator = ">" if self.sense > 0 else "<"
        return Guard(lambda: {operator: [var(self.path), self.level(share)]}, likely)


@dataclass(frozen=True, slots=True)
class Stock:
    """A number that actions gather and spend; it loses nothing by itself."""

    path: str
    start: int

    def affords(self, amount: Any, likely: float = 0.7) -> Guard:
        """That there is at least so much of it."""
        return Guard(lambda: {">=": [var(self.path), amount]}, likely)

    def below(self, limit: int, likely: float = 0.8) -> Guard:
        """That there is less of it."""
        return Guard(lambda: {"<": [var(self.path), limit]}, likely)


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean, false at first; set by events alone, or by an action."""

    path: str
    by_events: bool

    def on(self) -> Guard:
        """That it is set."""
        return Guard(lambda: var(self.path), 0.4)

    def off(self) -> Guard:
        """That it is not set."""
        return Guard(lambda: {"!": [var(self.path)]}, 0.6)


@dataclass(frozen=True, slots=True)
class Mode:
    """A text that is always one of a few; a patched one stands in a record beside a number."""

    path: str
    options: tuple[str, ...]
    patched: bool

    def equals(self, option: str) -> Guard:
        """That it is this option."""
        return Guard(lambda: {"==": [var(self.path), option]}, 1 / len(self.options))

    def differs(self, option: Any, likely: float) -> Guard:
        """That it is another option."""
        return Guard(lambda: {"!=": [var(self.path), option]}, likely)

    @property
    def record(self) -> str:
        """Where a patched one stands."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Row:
    """An array of numbers or of texts that never grows beyond its room."""

    path: str
    of_texts: bool
    count: int
    room: int

    def filled(self) -> Guard:
        """That something is in it."""
        return Guard(lambda: {"!!": [var(self.path)]}, 0.8)

    def open(self) -> Guard:
        """That it has room for one more."""
        return Guard(lambda: {"<": [self.length(), self.room]}, 0.8)

    def reaching(self, count: int) -> Guard:
        """That at least so many are in it."""
        return Guard(lambda: {">=": [self.length(), count]}, 0.7)

    def item(self, number: int) -> Any:
        """Something like what is in it."""
        return f"item_{number}" if self.of_texts else number

    def length(self) -> Json:
        """How many are in it."""
        return {"reduce": [var(self.path), {"+": [var("accumulator"), 1]}, 0]}


@dataclass(slots=True)
class Goal:
    """A number that wins a run.

    Attributes:
        path: where it stands; it starts at 0.
        step: what the action that serves it adds each time.
        target: what wins.
        deadline: the turn by which it has to be reached, or the run is lost.
    """

    path: str
    step: float
    target: float = 0.0
    deadline: int | None = None


@dataclass(slots=True)
class World:
    """All that stands in the state."""

    gauges: list[Gauge]
    stocks: list[Stock]
    flags: list[Flag]
    modes: list[Mode]
    rows: list[Row]
    goal: Goal | None

    @classmethod
    def laid_out(cls, source: Source, frame: Frame) -> World:
        """A world.

        Args:
            source: where choices come from.
            frame: how large it is, and whether there is something to reach.
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
        """The state tree, once all numbers stand."""
        tree: Json = {}
        for path, value in self._values():
            *parents, key = path.split(".")[1:]
            holder = tree
            for parent in parents:
                holder = holder.setdefault(parent, {})
            holder[key] = value
        return tree

    def paths(self) -> list[str]:
        """Where everything stands."""
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
    """Names and nests what stands in the state."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._counts: dict[str, int] = {}

    def of(self, kind: str) -> str:
        """A path for one more of a kind."""
        return f"{self._source.pick(_PLACES)}.{self.name(kind)}"

    def name(self, kind: str) -> str:
        """A name for one more of a kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}_{self._counts[kind]}"


def _mode(source: Source, places: _Places) -> Mode:
    options = tuple(f"level_{number}" for number in range(1, source.between(2, 4) + 1))
    if source.chance(40):
        return Mode(f"{places.of('record')}.level", options, patched=True)
    return Mode(places.of("mode"), options, patched=False)


def _row(source: Source, places: _Places) -> Row:
    return Row(places.of("row"), source.chance(50), count=source.below(4), room=source.between(4, 8))
