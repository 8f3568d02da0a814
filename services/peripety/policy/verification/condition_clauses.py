"""Condition clauses for condition/decision coverage, and boundary values of conditions.

Boundary values lie around matcher values, and around numbers in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.core.mutation_testing import MAX_INTEGER, sample, smallest_step
from peripety.policy.rule_paths import child_path, parent_path, split_host_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import DocumentPath


_ORDER_OPERATORS = frozenset({"<", "<=", ">", ">="})
_LOOKALIKE_SUFFIX = "-next"


@dataclass(frozen=True, slots=True)
class BoundaryPoint:
    """A position at a boundary, as conditions that a request there fulfils.

    Attributes:
        place: path of the boundary: in the rule, or in the document if it is in a list.
        name: `on`, `inside`, `outside`, `below` or `above`.
        holds: conditions that hold there.
        fails: conditions that do not hold there.
        closer: an additional condition for the most error-prone position.
    """

    place: DocumentPath
    name: str
    holds: tuple[Mapping[str, Any], ...]
    fails: tuple[Mapping[str, Any], ...] = ()
    closer: Mapping[str, Any] | None = None

    @property
    def in_list(self) -> bool:
        """Return True if the boundary is in a list, not in a rule."""
        return self.place[0] == "lists"


def boundary_points(clause: Clause, lists: Mapping[str, Any]) -> Iterator[BoundaryPoint]:
    """Yield the positions at the boundaries of a clause.

    Args:
        clause: the clause.
        lists: the lists of the policy.
    """
    if "arguments" in clause.condition:
        [matcher] = clause.condition["arguments"]
        for place, entry in _iter_entries(clause.place, matcher["among"], lists):
            yield from _points_around_entry(place, matcher, entry)
    elif "logic" in clause.condition:
        yield from _points_of_comparison(clause)


def _points_of_comparison(clause: Clause) -> Iterator[BoundaryPoint]:
    ((name, operands),) = clause.condition["logic"].items()
    place = (*clause.place, name)
    if name in _ORDER_OPERATORS:
        for number, (left, right) in enumerate(pairwise(operands)):
            yield from _points_around_number((*place, number), left, right)
            yield from _points_around_number((*place, number + 1), right, left)
    elif name == "in" and isinstance(operands[1], list) and len(operands[1]) > 1:
        for index, element in sample(operands[1]):
            on = {"logic": {"===": [operands[0], element]}}
            yield BoundaryPoint((*place, 1, index), "on", (on,))


def _iter_entries(
    place: DocumentPath,
    among: Sequence[str],
    lists: Mapping[str, Any],
) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the entries of a matcher with their paths, with lists expanded."""
    waiting = [((*place, "among"), among)]
    seen = set()
    while waiting:
        at, entries = waiting.pop()
        for index, entry in sample(entries):
            if not entry.startswith("@"):
                yield (*at, index), entry
            elif entry not in seen:
                seen.add(entry)
                waiting.append((("lists", entry[1:], "values"), lists[entry[1:]]["values"]))


def _points_around_number(place: DocumentPath, number: Any, other: Any) -> Iterator[BoundaryPoint]:
    """Yield the positions on and next to a number in a comparison."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not isinstance(other, dict):
        return
    step = smallest_step(number)
    yield BoundaryPoint(place, "on", ({"logic": {"===": [other, number]}},))
    for name, operator, bound in (("below", ">", number - step), ("above", "<", number + step)):
        beyond, within = {operator: [number, other]}, {f"{operator}=": [other, bound]}
        # Beyond the last exact integer, the next numbers are far away.
        is_last = isinstance(bound, int) and abs(bound) > MAX_INTEGER
        yield BoundaryPoint(place, name, ({"logic": beyond}, *(() if is_last else ({"logic": within},))))


def _points_around_entry(
    place: DocumentPath,
    matcher: Mapping[str, Any],
    entry: str,
) -> Iterator[BoundaryPoint]:
    """Yield the positions on an entry, just inside its range, and just outside."""

    def value(among: str, kind: str = matcher["kind"]) -> Mapping[str, Any]:
        roles = matcher["argument_roles"]
        return {"arguments": [{"argument_roles": roles, "kind": kind, "among": [among], "quantifier": "any"}]}

    match matcher["kind"]:
        case "path":
            yield BoundaryPoint(place, "on", (value(entry, "identifier"),))
            yield BoundaryPoint(place, "inside", (value(entry),), (value(entry, "identifier"),))
            parent = parent_path(entry)
            if parent is not None:
                lookalike = value(
                    child_path(parent, f"{entry.rstrip('/').rpartition('/')[2]}{_LOOKALIKE_SUFFIX}"),
                )
                yield BoundaryPoint(place, "outside", (value(parent),), (value(entry),), lookalike)
        case "identifier":
            yield BoundaryPoint(place, "on", (value(entry),))
        case kind:
            local, below, host = split_host_pattern(kind, entry)
            at = f"{local}@" if local else ""
            if host == "*":
                return
            yield BoundaryPoint(place, "inside" if below or local == "*" else "on", (value(entry),))
            if local not in {"", "*"}:
                yield BoundaryPoint(place, "outside", (value(f"*@{host}"),), (value(entry),))
            elif not host.startswith("["):
                beyond = f"{at}{host}" if below else f"{at}*.{host}"
                yield BoundaryPoint(place, "outside", (value(beyond),), (value(entry),))


_CONNECTIVE_OPERATORS = frozenset({"and", "or", "!", "!!", "if", "?:"})
_MEMBER_ORDER = (
    "servers",
    "tools",
    "roles",
    "argument_roles",
    "read_only",
    "destructive",
    "arguments",
    "logic",
)
_TRUE_LOGIC: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a condition.

    Attributes:
        place: its path in the rule.
        condition: the clause as a condition of its own.
        holds: conditions that hold whenever it is evaluated.
        fails: conditions that do not hold whenever it is evaluated.
    """

    place: DocumentPath
    condition: Mapping[str, Any]
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


def _iter_members(rule: Mapping[str, Any]) -> Iterator[Clause]:
    """Yield the members of a rule's condition and its matchers, in the order of evaluation."""
    held: tuple[Mapping[str, Any], ...] = ()
    for place, condition in _iter_conditions(rule["when"]):
        yield Clause(("when", *place), condition, held)
        held = (*held, condition)


def _iter_conditions(when: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Mapping[str, Any]]]:
    for member in _MEMBER_ORDER:
        if member == "arguments":
            for number, matcher in enumerate(when.get(member, ())):
                yield (member, number), {member: [matcher]}
        elif member in when:
            yield (member,), {member: when[member]}


def iter_clauses(rule: Mapping[str, Any]) -> Iterator[Clause]:
    """Yield the members of a condition, each followed by the comparisons in its logic."""
    for member in _iter_members(rule):
        if member.condition != {"logic": _TRUE_LOGIC}:
            yield member
        if "logic" in member.condition:
            yield from _iter_connected(member.condition["logic"], member)


def _iter_connected(part: Any, clause: Clause) -> Iterator[Clause]:
    """Yield the comparisons that an expression connects, each with the facts known at its evaluation."""
    name, operands = _split_operation(part)
    items = operands if isinstance(operands, list) else [operands]
    for number, asked in _iter_boolean_operands(name, items, clause):
        place = (*clause.place, name, *((number,) if items is operands else ()))
        inner = replace(asked, place=place, condition=_truth_condition(items[number]))
        operator, _ = _split_operation(items[number])
        if operator in _CONNECTIVE_OPERATORS:
            yield from _iter_connected(items[number], inner)
        elif operator:
            yield inner


def _iter_boolean_operands(name: str, items: Sequence[Any], clause: Clause) -> Iterator[tuple[int, Clause]]:
    """Yield the operands with a boolean meaning, each with the facts known at its evaluation."""
    for number, item in enumerate(items):
        match name:
            case "and":
                yield number, clause
                clause = _with_fact(clause, item, holds=True)
            case "or":
                yield number, clause
                clause = _with_fact(clause, item, holds=False)
            case "if" | "?:" if number % 2:
                condition = items[number - 1]
                yield number, _with_fact(clause, condition, holds=True)
                clause = _with_fact(clause, condition, holds=False)
            case "if" | "?:":
                yield number, clause
            case "!" | "!!" if number == 0:
                yield number, clause


def _with_fact(clause: Clause, item: Any, *, holds: bool) -> Clause:
    if holds:
        return replace(clause, holds=(*clause.holds, _truth_condition(item)))
    return replace(clause, fails=(*clause.fails, _truth_condition(item)))


def _split_operation(part: Any) -> tuple[str, Any]:
    """Return the operator of an expression and its operands; an empty operator for other values."""
    return next(iter(part.items())) if isinstance(part, dict) and len(part) == 1 else ("", [])


def _truth_condition(item: Any) -> Mapping[str, Any]:
    return {"logic": item if isinstance(item, dict) else {"!!": [item]}}
