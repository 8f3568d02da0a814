"""The boundaries in conditions: the entries of matchers, and what comparisons compare with."""

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
    """A place on a boundary or beside it, as conditions that a request there meets.

    Attributes:
        place: the boundary: from the rule on, or from the document on when it is in a list.
        name: `on`, `inside`, `outside`, `below` or `above`.
        holds: what holds there.
        fails: what does not hold there.
        closer: what holds in addition where the boundary is easily mistaken.
    """

    place: Place
    name: str
    holds: tuple[Mapping[str, Any], ...]
    fails: tuple[Mapping[str, Any], ...] = ()
    closer: Mapping[str, Any] | None = None

    @property
    def in_list(self) -> bool:
        """Whether the boundary is in a list, and not in a rule."""
        return self.place[0] == "lists"


def points(question: Question, lists: Mapping[str, Any]) -> Iterator[Point]:
    """The places on the boundaries in a part of a condition, and beside them.

    Args:
        question: the part.
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
    """The entries of a matcher with their places, the values of lists in place of their names."""
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
    """The numbers on and beside one that something is compared with."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not isinstance(other, dict):
        return
    step = smallest_step(number)
    yield Point(place, "on", ({"logic": {"===": [other, number]}},))
    for name, operator, bound in (("below", ">", number - step), ("above", "<", number + step)):
        beyond, within = {operator: [number, other]}, {f"{operator}=": [other, bound]}
        # Behind the last integer there are only numbers that are far away.
        is_last = isinstance(bound, int) and abs(bound) > LARGEST_INTEGER
        yield Point(place, name, ({"logic": beyond}, *(() if is_last else ({"logic": within},))))


def _around_entry(place: Place, matcher: Mapping[str, Any], entry: str) -> Iterator[Point]:
    """The values on an entry, just inside of what it stands for, and just outside."""

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
