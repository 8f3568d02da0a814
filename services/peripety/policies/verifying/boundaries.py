"""Boundary values of conditions: around matcher entries, and around numbers in comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.mutations.steps import LARGEST_INTEGER, smallest_step, some
from peripety.policies.entries import below_path, parent_path, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.mutations.changes import Place
    from peripety.policies.verifying.parts import Question

__all__ = ["Point", "points"]

_ORDER = frozenset({"<", "<=", ">", ">="})
_NEXT = "-next"


@dataclass(frozen=True, slots=True)
class Point:
    """A position at a boundary, as conditions that a request there fulfils.

    Attributes:
        place: path of the boundary: in the rule, or in the document if it is in a list.
        name: `on`, `inside`, `outside`, `below` or `above`.
        holds: conditions that hold there.
        fails: conditions that do not hold there.
        closer: an additional condition for the most error-prone position.
    """

    place: Place
    name: str
    holds: tuple[Mapping[str, Any], ...]
    fails: tuple[Mapping[str, Any], ...] = ()
    closer: Mapping[str, Any] | None = None

    @property
    def in_list(self) -> bool:
        """Return True if the boundary is in a list, not in a rule."""
        return self.place[0] == "lists"


def points(question: Question, lists: Mapping[str, Any]) -> Iterator[Point]:
    """Yield the positions at the boundaries of a clause.

    Args:
        question: the clause.
        lists: the lists of the policy.
    """
    if "arguments" in question.condition:
        [matcher] = question.condition["arguments"]
        for place, entry in _entries(question.place, matcher["among"], lists):
            yield from _around_entry(place, matcher, entry)
    elif "logic" in question.condition:
        yield from _in_comparison(question)


def _in_comparison(question: Question) -> Iterator[Point]:
    ((name, operands),) = question.condition["logic"].items()
    place = (*question.place, name)
    if name in _ORDER:
        for number, (left, right) in enumerate(pairwise(operands)):
            yield from _around_number((*place, number), left, right)
            yield from _around_number((*place, number + 1), right, left)
    elif name == "in" and isinstance(operands[1], list) and len(operands[1]) > 1:
        for index, element in some(operands[1]):
            on = {"logic": {"===": [operands[0], element]}}
            yield Point((*place, 1, index), "on", (on,))


def _entries(place: Place, among: Sequence[str], lists: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield the entries of a matcher with their paths, with lists expanded."""
    waiting = [((*place, "among"), among)]
    seen = set()
    while waiting:
        at, entries = waiting.pop()
        for index, entry in some(entries):
            if not entry.startswith("@"):
                yield (*at, index), entry
            elif entry not in seen:
                seen.add(entry)
                waiting.append((("lists", entry[1:], "values"), lists[entry[1:]]["values"]))


def _around_number(place: Place, number: Any, other: Any) -> Iterator[Point]:
    """Yield the positions on and next to a number in a comparison."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not isinstance(other, dict):
        return
    step = smallest_step(number)
    yield Point(place, "on", ({"logic": {"===": [other, number]}},))
    for name, operator, bound in (("below", ">", number - step), ("above", "<", number + step)):
        beyond, within = {operator: [number, other]}, {f"{operator}=": [other, bound]}
        # Beyond the last exact integer, the next numbers are far away.
        is_last = isinstance(bound, int) and abs(bound) > LARGEST_INTEGER
        yield Point(place, name, ({"logic": beyond}, *(() if is_last else ({"logic": within},))))


def _around_entry(place: Place, matcher: Mapping[str, Any], entry: str) -> Iterator[Point]:
    """Yield the positions on an entry, just inside its range, and just outside."""

    def value(among: str, kind: str = matcher["kind"]) -> Mapping[str, Any]:
        roles = matcher["argument_roles"]
        return {"arguments": [{"argument_roles": roles, "kind": kind, "among": [among], "quantifier": "any"}]}

    match matcher["kind"]:
        case "path":
            yield Point(place, "on", (value(entry, "identifier"),))
            yield Point(place, "inside", (value(entry),), (value(entry, "identifier"),))
            parent = parent_path(entry)
            if parent is not None:
                lookalike = value(below_path(parent, f"{entry.rstrip('/').rpartition('/')[2]}{_NEXT}"))
                yield Point(place, "outside", (value(parent),), (value(entry),), lookalike)
        case "identifier":
            yield Point(place, "on", (value(entry),))
        case kind:
            local, below, host = pattern_of(kind, entry)
            at = f"{local}@" if local else ""
            if host == "*":
                return
            yield Point(place, "inside" if below or local == "*" else "on", (value(entry),))
            if local not in {"", "*"}:
                yield Point(place, "outside", (value(f"*@{host}"),), (value(entry),))
            elif not host.startswith("["):
                beyond = f"{at}{host}" if below else f"{at}*.{host}"
                yield Point(place, "outside", (value(beyond),), (value(entry),))
