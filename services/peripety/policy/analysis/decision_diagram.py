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
        self._unique_nodes: dict[tuple[int, _Edges], int] = {}
        self._if_then_else_cache: dict[tuple[int, int, int], int] = {}
        self._apply_cache: dict[Callable[[int, int], int], dict[tuple[int, int], int]] = {}
        self._set_of_result_cache: dict[int, dict[int, int]] = {}
        self._cheapest_cache: dict[int, tuple[float, int, int]] = {}

    def variable(self, costs: Sequence[float]) -> int:
        """Create a variable and return its number.

        Args:
            costs: for each of its values the cost of the value in an example, in ascending order.
        """
        self._costs.append(costs)
        self._full.append((1 << len(costs)) - 1)
        return len(self._costs) - 1

    def value_in(self, variable: int, values: int) -> int:
        """Return the set in which a variable has one of the values of a mask."""
        full = self._full[variable]
        values &= full
        if values in {0, full}:
            return YES if values else NO
        return self._make_node(variable, {YES: values, NO: full & ~values})

    def complement(self, diagram: int) -> int:
        """Return the complement of a set."""
        return self.if_then_else(diagram, NO, YES)

    def intersection(self, one: int, other: int) -> int:
        """Return the intersection of two sets."""
        return self.if_then_else(one, other, NO)

    def union(self, one: int, other: int) -> int:
        """Return the union of two sets."""
        return self.if_then_else(one, YES, other)

    def union_all(self, diagrams: Iterable[int]) -> int:
        """Return the union of any number of sets."""
        found = NO
        for diagram in diagrams:
            found = self.union(diagram, found)
        return found

    def if_then_else(self, which: int, then: int, otherwise: int) -> int:
        """Return a diagram that equals one diagram inside a set and another outside of it (if-then-else)."""
        if which == YES or then == otherwise:
            return then
        if which == NO:
            return otherwise
        if then == YES and otherwise == NO:
            return which
        key = (which, then, otherwise)
        known = self._if_then_else_cache.get(key)
        if known is not None:
            return known
        level = min(self._level(which), self._level(then), self._level(otherwise))
        found: dict[int, int] = {}
        self._charge_step()
        thens, otherwises = self._edges_at(then, level), self._edges_at(otherwise, level)
        for asked, chooser in self._edges_at(which, level):
            for first, left in thens if chooser != NO else ((_ANY_VALUE, NO),):
                some = asked & first
                if not some:
                    continue
                for second, right in otherwises if chooser != YES else ((_ANY_VALUE, NO),):
                    values = some & second
                    if values:
                        child = self.if_then_else(chooser, left, right)
                        found[child] = found.get(child, 0) | values
        result = self._if_then_else_cache[key] = self._make_node(level, found)
        return result

    def apply(self, results: Callable[[int, int], int], one: int, other: int) -> int:
        """Apply a binary function to the results of two diagrams. Equal results always give `NO`."""
        if one == other:
            return NO
        if one < FIRST_NODE and other < FIRST_NODE:
            return results(one, other)
        memory = self._apply_cache.setdefault(results, {})
        known = memory.get((one, other))
        if known is not None:
            return known
        self._charge_step()
        level = min(self._level(one), self._level(other))
        found: dict[int, int] = {}
        others = self._edges_at(other, level)
        for first, left in self._edges_at(one, level):
            for second, right in others:
                values = first & second
                if values:
                    child = self.apply(results, left, right)
                    found[child] = found.get(child, 0) | values
        result = memory[one, other] = self._make_node(level, found)
        return result

    def set_of_result(self, diagram: int, result: int) -> int:
        """Return the set in which a diagram has a given result."""
        if diagram < FIRST_NODE:
            return YES if diagram == result else NO
        memory = self._set_of_result_cache.setdefault(result, {})
        if diagram not in memory:
            self._charge_step()
            found: dict[int, int] = {}
            for values, child in self._edges[diagram - FIRST_NODE]:
                at = self.set_of_result(child, result)
                found[at] = found.get(at, 0) | values
            memory[diagram] = self._make_node(self._level(diagram), found)
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
            _, value, child = self._cheapest_example(diagram)
            found[self._level(diagram)] = value
            diagram = child
        return found

    def _cheapest_example(self, diagram: int) -> tuple[float, int, int]:
        """Return the cost of the cheapest example of a set, its first value, and the remaining diagram."""
        if diagram < FIRST_NODE:
            return (0.0 if diagram == YES else inf), 0, diagram
        known = self._cheapest_cache.get(diagram)
        if known is None:
            costs = self._costs[self._level(diagram)]
            choices = []
            for values, child in self._edges[diagram - FIRST_NODE]:
                value = (values & -values).bit_length() - 1
                choices.append((costs[value] + self._cheapest_example(child)[0], value, child))
            known = self._cheapest_cache[diagram] = min(choices)
        return known

    def _level(self, diagram: int) -> int:
        return _RESULT_LEVEL if diagram < FIRST_NODE else self._levels[diagram - FIRST_NODE]

    def _edges_at(self, diagram: int, level: int) -> _Edges:
        if diagram < FIRST_NODE or self._levels[diagram - FIRST_NODE] != level:
            return ((_ANY_VALUE, diagram),)
        return self._edges[diagram - FIRST_NODE]

    def _make_node(self, level: int, found: dict[int, int]) -> int:
        if len(found) == 1:
            return next(iter(found))
        edges = tuple(sorted((values, child) for child, values in found.items()))
        key = (level, edges)
        known = self._unique_nodes.get(key)
        if known is None:
            known = self._unique_nodes[key] = FIRST_NODE + len(self._edges)
            self._levels.append(level)
            self._edges.append(edges)
        return known

    def _charge_step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TooLargeError
