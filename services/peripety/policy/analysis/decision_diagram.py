"""Reduced ordered decision diagrams over variables with many values (multi-valued ROBDDs).

Why decision diagrams. The analysis of a policy answers questions about *all* requests to a tool: can a rule
match, do two rule lists decide alike, which request shows a difference. The requests of a tool are infinite,
but its conditions divide the values of each argument into finitely many regions. One variable per argument,
with one value per region, makes the question finite. Most rules read few arguments, so the diagrams are
small. They reduce emptiness and equality to a comparison of two integers, and a path through a set is an
example. The proof that two rule lists are equivalent is therefore one comparison.

Representation. A diagram is an integer. Integers below `FIRST_NODE` are results: 0 and 1 mean no and yes if
the diagram denotes a set. The creator of a diagram may use other results, such as the index of a rule. Every
other integer is a node: a variable, and edges that are pairs of a value mask and a child. A mask has one bit
per value, so an edge covers any subset of the values of a variable.

Invariants.

- Ordered: variables are created first, and every path tests them in the order of creation.
- Reduced: a node has at least two children, all different, and its masks are disjoint and cover all values.
- Hash-consed: equal nodes exist once. Equal functions therefore have equal integers.
- Memoized: operations on nodes store their results, so none is computed twice for the same operands.
- Bounded: a step budget is charged for each node that an operation computes. `TooLargeError` ends the
  analysis of a tool; the result is then "undecided", never a wrong proof. The budget counts steps, not time,
  so that a policy gets the same answer on every machine.

Soundness. The space of requests may be larger than the real one, because arguments that a schema ties
together and opaque expressions are independent variables. A proof over the larger space also holds for the
real one. An example may lie outside of it, so each example is replayed on the engine before it is reported.

Examples. Each value of a variable has a cost. `example` returns the cheapest assignment of a set, so that a
witness prefers plain values to missing, invalid or unknown ones.

Alternatives. An SMT solver over strings and numbers takes milliseconds per query, and mutation testing makes
a thousand of them; it may also answer "unknown" where diagrams do not. A solver is used in tests only, as an
independent oracle. Binary diagrams with one variable per region would need constraints that exactly one
region holds. Variables are not reordered: roles come first, then the arguments in the order in which
conditions mention them. The step budget limits the rest.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


NO = 0
YES = 1
FIRST_NODE = 1 << 16

_ANY_VALUE = -1  # the mask of all values
_RESULT_LEVEL = 1 << 30

_Edges = tuple[tuple[int, int], ...]


class TooLargeError(Exception):
    """The step budget of diagram operations is exhausted."""


class Diagrams:
    """A store of diagrams over variables, which are created first and tested in that order.

    Args:
        steps: step budget, in visited nodes.
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
        """Create a variable and return its number.

        Args:
            costs: for each of its values the cost of the value in an example, in ascending order.
        """
        self._costs.append(costs)
        self._full.append((1 << len(costs)) - 1)
        return len(self._costs) - 1

    def among(self, variable: int, values: int) -> int:
        """Return the set in which a variable has one of the values of a mask."""
        full = self._full[variable]
        values &= full
        if values in {0, full}:
            return YES if values else NO
        return self._node(variable, {YES: values, NO: full & ~values})

    def negation(self, diagram: int) -> int:
        """Return the complement of a set."""
        return self.choose(diagram, NO, YES)

    def both(self, one: int, other: int) -> int:
        """Return the intersection of two sets."""
        return self.choose(one, other, NO)

    def either(self, one: int, other: int) -> int:
        """Return the union of two sets."""
        return self.choose(one, YES, other)

    def any_of(self, diagrams: Iterable[int]) -> int:
        """Return the union of any number of sets."""
        found = NO
        for diagram in diagrams:
            found = self.either(diagram, found)
        return found

    def choose(self, which: int, then: int, otherwise: int) -> int:
        """Return a diagram that equals one diagram inside a set and another outside of it (if-then-else)."""
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
            for first, left in thens if chooser != NO else ((_ANY_VALUE, NO),):
                some = asked & first
                if not some:
                    continue
                for second, right in otherwises if chooser != YES else ((_ANY_VALUE, NO),):
                    values = some & second
                    if values:
                        child = self.choose(chooser, left, right)
                        found[child] = found.get(child, 0) | values
        result = self._chosen[key] = self._node(level, found)
        return result

    def combine(self, results: Callable[[int, int], int], one: int, other: int) -> int:
        """Apply a binary function to the results of two diagrams. Equal results always give `NO`."""
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
        """Return the set in which a diagram has a given result."""
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
        """Return all results that a diagram can have."""
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
        """Return the cheapest assignment of variables in a set, or None for the empty set.

        Variables that are not in the assignment may have any value.
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
        """Return the cost of the cheapest example of a set, its first value, and the remaining diagram."""
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
        return _RESULT_LEVEL if diagram < FIRST_NODE else self._levels[diagram - FIRST_NODE]

    def _below(self, diagram: int, level: int) -> _Edges:
        if diagram < FIRST_NODE or self._levels[diagram - FIRST_NODE] != level:
            return ((_ANY_VALUE, diagram),)
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
