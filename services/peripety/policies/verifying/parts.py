"""Clauses of a condition, for condition/decision coverage."""

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
    """A clause of a condition.

    Attributes:
        place: its path in the rule.
        condition: the clause as a condition of its own.
        holds: conditions that hold whenever it is evaluated.
        fails: conditions that do not hold whenever it is evaluated.
    """

    place: Place
    condition: Mapping[str, Any]
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


def _members(rule: Mapping[str, Any]) -> Iterator[Question]:
    """Yield the members of a rule's condition and its matchers, in the order of evaluation."""
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
    """Yield the members of a condition, each followed by the comparisons in its logic."""
    for member in _members(rule):
        if member.condition != {"logic": _ALWAYS}:
            yield member
        if "logic" in member.condition:
            yield from _connected(member.condition["logic"], member)


def _connected(part: Any, question: Question) -> Iterator[Question]:
    """Yield the comparisons that an expression connects, each with the facts known at its evaluation."""
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
    """Yield the operands with a boolean meaning, each with the facts known at its evaluation."""
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
    """Return the operator of an expression and its operands; an empty operator for other values."""
    return next(iter(part.items())) if isinstance(part, dict) and len(part) == 1 else ("", [])


def _truth(item: Any) -> Mapping[str, Any]:
    return {"logic": item if isinstance(item, dict) else {"!!": [item]}}
