"""The parts of a condition that are true or false of a request, and when they are asked at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.mutations.changes import Place

__all__ = ["Question", "questions"]

_CONNECTIVES = frozenset({"and", "or", "!", "!!", "if", "?:"})
_IN_ORDER = ("servers", "tools", "roles", "argument_roles", "read_only", "destructive", "arguments", "logic")
_ALWAYS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Question:
    """A part of a condition.

    Attributes:
        place: where it is, from the rule on.
        condition: the part, as a condition of its own.
        holds: conditions that hold whenever it is asked.
        fails: conditions that do not hold whenever it is asked.
    """

    place: Place
    condition: Mapping[str, Any]
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


def _members(rule: Mapping[str, Any]) -> Iterator[Question]:
    """The members of a rule's condition and its matchers, in the order in which they are asked."""
    held: tuple[Mapping[str, Any], ...] = ()
    for place, condition in _in_order(rule["when"]):
        yield Question(("when", *place), condition, held)
        held = (*held, condition)


def _in_order(when: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    for member in _IN_ORDER:
        if member == "arguments":
            for number, matcher in enumerate(when.get(member, ())):
                yield (member, number), {member: [matcher]}
        elif member in when:
            yield (member,), {member: when[member]}


def questions(rule: Mapping[str, Any]) -> Iterator[Question]:
    """The members, then the comparisons that each logic connects; not a logic that always holds."""
    for member in _members(rule):
        if member.condition != {"logic": _ALWAYS}:
            yield member
        if "logic" in member.condition:
            yield from _connected(member.condition["logic"], member)


def _connected(part: Any, question: Question) -> Iterator[Question]:
    """The comparisons that an expression connects, each with what is known when it is asked."""
    name, operands = _operation(part)
    items = operands if isinstance(operands, list) else [operands]
    for number, asked in _asked(name, items, question):
        place = (*question.place, name, *((number,) if items is operands else ()))
        inner = replace(asked, place=place, condition=_truth(items[number]))
        operator, _ = _operation(items[number])
        if operator in _CONNECTIVES:
            yield from _connected(items[number], inner)
        elif operator:
            yield inner


def _asked(name: str, items: Sequence[Any], question: Question) -> Iterator[tuple[int, Question]]:
    """The operands of which only the truth matters, each with what is known when it is asked."""
    for number, item in enumerate(items):
        match name:
            case "and":
                yield number, question
                question = _knowing(question, item, holds=True)
            case "or":
                yield number, question
                question = _knowing(question, item, holds=False)
            case "if" | "?:" if number % 2:
                condition = items[number - 1]
                yield number, _knowing(question, condition, holds=True)
                question = _knowing(question, condition, holds=False)
            case "if" | "?:":
                yield number, question
            case "!" | "!!" if number == 0:
                yield number, question


def _knowing(question: Question, item: Any, *, holds: bool) -> Question:
    if holds:
        return replace(question, holds=(*question.holds, _truth(item)))
    return replace(question, fails=(*question.fails, _truth(item)))


def _operation(part: Any) -> tuple[str, Any]:
    """The operator of an expression and its operands; no operator for what is no operation."""
    return next(iter(part.items())) if isinstance(part, dict) and len(part) == 1 else ("", [])


def _truth(item: Any) -> Mapping[str, Any]:
    return {"logic": item if isinstance(item, dict) else {"!!": [item]}}
