"""Decision diagrams over variables of many values: reduced, ordered, and each only once.

A diagram is an integer. Those below `FIRST_NODE` are results by themselves: 0 and 1 are no and yes where a
diagram is a set, anything else is for its makers to say. Equal functions have equal diagrams.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["FIRST_NODE", "NO", "YES", "Diagrams", "TooLargeError"]

NO = 0
YES = 1
FIRST_NODE = 1 << 16

_ANY = -1  # every value, as a mask
_AFTER_ALL = 1 << 30

_Edges = tuple[tuple[int, int], ...]


class TooLargeError(Exception):
    """A question about diagrams costs more than it may."""


class Diagrams:
    """A store of diagrams over variables that are made first, and asked in that order.

    Args:
        steps: how many nodes may be looked at before it is too much.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._costs: list[Sequence[float]] = []
        self._full: list[int] = []
        self._levels: list[int] = []
        self._edges: list[_Edges] = []
        self._known: dict[tuple[int, _Edges], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}
        self._combined: dict[Callable[[int, int], int], dict[tuple[int, int], int]] = {}
        self._where: dict[int, dict[int, int]] = {}
        self._cheapest: dict[int, tuple[float, int, int]] = {}

    def variable(self, costs: Sequence[float]) -> int:
        """A new variable; its number.

        Args:
            costs: for each of its values how little it is wanted in an example, least first.
        """
        self._costs.append(costs)
        self._full.append((1 << len(costs)) - 1)
        return len(self._costs) - 1

    def among(self, variable: int, values: int) -> int:
        """Whether a variable has one of the values in a mask."""
        full = self._full[variable]
        values &= full
        if values in {0, full}:
            return YES if values else NO
        return self._node(variable, {YES: values, NO: full & ~values})

    def negation(self, diagram: int) -> int:
        """Whether it is not so."""
        return self.choose(diagram, NO, YES)

    def both(self, one: int, other: int) -> int:
        """Whether both are so."""
        return self.choose(one, other, NO)

    def either(self, one: int, other: int) -> int:
        """Whether one of them is so."""
        return self.choose(one, YES, other)

    def any_of(self, diagrams: Iterable[int]) -> int:
        """Whether one of them is so."""
        found = NO
        for diagram in diagrams:
            found = self.either(diagram, found)
        return found

    def choose(self, which: int, then: int, otherwise: int) -> int:
        """One diagram where a set holds, another where it does not."""
        if which == YES or then == otherwise:
            return then
        if which == NO:
            return otherwise
        if then == YES and otherwise == NO:
            return which
        key = (which, then, otherwise)
        known = self._chosen.get(key)
        if known is not None:
            return known
        level = min(self._level(which), self._level(then), self._level(otherwise))
        found: dict[int, int] = {}
        self._pay()
        thens, otherwises = self._below(then, level), self._below(otherwise, level)
        for asked, chooser in self._below(which, level):
            for first, left in thens if chooser != NO else ((_ANY, NO),):
                some = asked & first
                if not some:
                    continue
                for second, right in otherwises if chooser != YES else ((_ANY, NO),):
                    values = some & second
                    if values:
                        child = self.choose(chooser, left, right)
                        found[child] = found.get(child, 0) | values
        result = self._chosen[key] = self._node(level, found)
        return result

    def combine(self, results: Callable[[int, int], int], one: int, other: int) -> int:
        """The diagram of what a function makes of the results of two; of equal results it makes `NO`."""
        if one == other:
            return NO
        if one < FIRST_NODE and other < FIRST_NODE:
            return results(one, other)
        memory = self._combined.setdefault(results, {})
        known = memory.get((one, other))
        if known is not None:
            return known
        self._pay()
        level = min(self._level(one), self._level(other))
        found: dict[int, int] = {}
        others = self._below(other, level)
        for first, left in self._below(one, level):
            for second, right in others:
                values = first & second
                if values:
                    child = self.combine(results, left, right)
                    found[child] = found.get(child, 0) | values
        result = memory[one, other] = self._node(level, found)
        return result

    def where(self, diagram: int, result: int) -> int:
        """The set of what comes to a result."""
        if diagram < FIRST_NODE:
            return YES if diagram == result else NO
        memory = self._where.setdefault(result, {})
        if diagram not in memory:
            self._pay()
            found: dict[int, int] = {}
            for values, child in self._edges[diagram - FIRST_NODE]:
                at = self.where(child, result)
                found[at] = found.get(at, 0) | values
            memory[diagram] = self._node(self._level(diagram), found)
        return memory[diagram]

    def results(self, diagram: int) -> set[int]:
        """Everything that a diagram may come to."""
        seen: set[int] = set()
        pending = [diagram]
        while pending:
            at = pending.pop()
            if at not in seen:
                seen.add(at)
                if at >= FIRST_NODE:
                    pending.extend(child for _, child in self._edges[at - FIRST_NODE])
        return {at for at in seen if at < FIRST_NODE}

    def example(self, diagram: int) -> dict[int, int] | None:
        """Values of variables for which a set holds, those that are wanted most; None for the empty set.

        What it does not name may have any value.
        """
        if diagram == NO:
            return None
        found: dict[int, int] = {}
        while diagram != YES:
            _, value, child = self._best(diagram)
            found[self._level(diagram)] = value
            diagram = child
        return found

    def _best(self, diagram: int) -> tuple[float, int, int]:
        """What the best example of a set costs, and its first value and the rest of it."""
        if diagram < FIRST_NODE:
            return (0.0 if diagram == YES else inf), 0, diagram
        known = self._cheapest.get(diagram)
        if known is None:
            costs = self._costs[self._level(diagram)]
            choices = []
            for values, child in self._edges[diagram - FIRST_NODE]:
                value = (values & -values).bit_length() - 1
                choices.append((costs[value] + self._best(child)[0], value, child))
            known = self._cheapest[diagram] = min(choices)
        return known

    def _level(self, diagram: int) -> int:
        return _AFTER_ALL if diagram < FIRST_NODE else self._levels[diagram - FIRST_NODE]

    def _below(self, diagram: int, level: int) -> _Edges:
        if diagram < FIRST_NODE or self._levels[diagram - FIRST_NODE] != level:
            return ((_ANY, diagram),)
        return self._edges[diagram - FIRST_NODE]

    def _node(self, level: int, found: dict[int, int]) -> int:
        if len(found) == 1:
            return next(iter(found))
        edges = tuple(sorted((values, child) for child, values in found.items()))
        key = (level, edges)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = FIRST_NODE + len(self._edges)
            self._levels.append(level)
            self._edges.append(edges)
        return known

    def _pay(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TooLargeError
