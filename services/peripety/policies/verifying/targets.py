"""Coverage targets: rules, both values of clauses, and both sides of boundaries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.policies.analysis.verdicts import Target
from peripety.policies.places import place_of
from peripety.policies.verifying.boundaries import points
from peripety.policies.verifying.parts import questions
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim import Policy

__all__ = ["BOUNDARY", "CONDITION_DECISION", "KINDS", "RULE", "Aim", "aims"]

RULE, CONDITION_DECISION, BOUNDARY = KINDS = ("rule", "condition_decision", "boundary")
"""The kinds of coverage."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A coverage target.

    Attributes:
        kind: one of the `KINDS`.
        path: JSON Pointer of the part, with the wanted result as its last segment: `true` or `false` of a
            clause; `on`, `inside`, `outside`, `below` or `above` of a boundary. `/rules/-` means the requests
            that no rule applies to.
        ways: the alternative sets of requests that reach it.
        closer: the most significant of them, if it is narrower than a request needs to be.
    """

    kind: str
    path: str
    ways: tuple[Target, ...]
    closer: Target | None = None


def aims(policy: Policy) -> tuple[Aim, ...]:
    """Return all coverage targets of a policy, reachable or not."""
    conditions = [aim for index in range(len(policy.rules)) for aim in _of_condition(policy, index)]
    return (*_of_rules(policy), *conditions, *_of_boundaries(policy))


def _of_rules(policy: Policy) -> Iterator[Aim]:
    for index in range(len(policy.rules)):
        yield Aim(RULE, pointer(place_of(policy, index)), (Target(index, decides=True),))
    yield Aim(RULE, "/rules/-", (Target(len(policy.rules)),))


def _of_condition(policy: Policy, index: int) -> Iterator[Aim]:
    for question in questions(policy.rules[index]):
        place = pointer((*place_of(policy, index), *question.place))
        asked = (question.condition,)
        true = Target(index, holds=question.holds + asked, fails=question.fails)
        false = Target(index, holds=question.holds, fails=question.fails + asked)
        yield Aim(CONDITION_DECISION, f"{place}/true", (true,))
        yield Aim(CONDITION_DECISION, f"{place}/false", (false,))


def _of_boundaries(policy: Policy) -> Iterator[Aim]:
    """Yield the targets of boundaries; one in a list is reached wherever the list is used."""
    found: dict[str, Aim] = {}
    lists = policy.spec.get("lists", {})
    for index, rule in enumerate(policy.rules):
        for question in questions(rule):
            for point in points(question, lists):
                place = point.place if point.in_list else (*place_of(policy, index), *point.place)
                path = f"{pointer(place)}/{point.name}"
                way = Target(
                    index, holds=(*question.holds, *point.holds), fails=(*question.fails, *point.fails)
                )
                if path in found:
                    found[path] = replace(found[path], ways=(*found[path].ways, way))
                else:
                    closer = replace(way, holds=(*way.holds, point.closer)) if point.closer else None
                    found[path] = Aim(BOUNDARY, path, (way,), closer)
    yield from found.values()
