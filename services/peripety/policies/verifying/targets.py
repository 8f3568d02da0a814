"""What scenarios should reach: rules, parts of conditions both ways, and both sides of boundaries."""

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
    """Something that scenarios should reach.

    Attributes:
        kind: one of the `KINDS`.
        path: JSON Pointer of the part, with what is wanted of it as its last segment: `true` and `false` of a
            part of a condition, `on`, `inside`, `outside`, `below` and `above` of a boundary. The end of
            the rules, `/rules/-`, stands for the requests of which none takes hold.
        ways: any of these reaches it.
        closer: the way that shows most, if there is one that not every request needs to take.
    """

    kind: str
    path: str
    ways: tuple[Target, ...]
    closer: Target | None = None


def aims(policy: Policy) -> tuple[Aim, ...]:
    """Everything that scenarios of a policy should reach, whether anything can or not."""
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
    """The points on and beside boundaries; one in a list is reached wherever the list is used."""
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
