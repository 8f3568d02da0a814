"""The kinds of tests, by what tests are made for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.requests import refuse, require
from peripety.testgen.model import Category, TaskContext

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["categories_of"]

_EXISTENCE = Category("existence", "What the task asks for is there at all, where and how it asks for it.")
_CORRECTNESS = Category("correctness", "What comes out is right, for usual inputs and for unusual ones.")
_BOUNDARY = Category(
    "boundary",
    "Both sides of every limit: the value at the limit, the nearest one beyond it, nothing at all, the"
    " largest, and inputs that are not valid.",
)

_OF_CONTEXT = {
    TaskContext.BENCHMARK: (
        Category(
            "anti_cheat",
            "A solution that only pretends fails: one that returns fixed answers, that looks up what it is"
            " to work out, or that uses what is prohibited.",
        ),
        _EXISTENCE,
        _CORRECTNESS,
        _BOUNDARY,
        Category("integration", "The parts work together: one uses what another has made, in any order."),
    ),
    TaskContext.PROMPT: (_EXISTENCE, _CORRECTNESS, _BOUNDARY),
    TaskContext.SCENARIO: (
        Category("actions", "An action that is allowed does exactly what it says, and nothing else."),
        Category(
            "rejections",
            "An action that is not allowed, or is called wrongly, is rejected and changes nothing.",
        ),
        Category(
            "boundary",
            "Both sides of every limit: the value at which a rule begins to hold, and its neighbours.",
        ),
        Category(
            "events",
            "What happens by itself happens when it should, and only then, with the effects it should have.",
        ),
        Category(
            "endings",
            "Each end is reached when its condition holds and not a turn earlier; ways past it are tried.",
        ),
    ),
    TaskContext.POLICY: (
        Category("allowed", "What the rules permit is allowed."),
        Category("denied", "What the rules forbid, or say nothing about, is denied."),
        Category("escalated", "What a person has to decide is escalated."),
        Category(
            "boundary", "Both sides of every limit: the value at which a rule takes hold, and its neighbours."
        ),
        Category(
            "evasion",
            "Requests that want to get past a rule: values written differently that mean the same, neighbours"
            " whose names begin the same way, missing and superfluous arguments.",
        ),
    ),
    TaskContext.CUSTOM: (),
}

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MOST = 20
_MAX_NAME_CHARACTERS = 64


def categories_of(context: TaskContext, own: Sequence[Category] = ()) -> tuple[Category, ...]:
    """The categories of a run, in order.

    Args:
        context: what tests are made for.
        own: the caller's own, which `TaskContext.CUSTOM` needs, and no other context takes.

    Raises:
        InvalidArgumentError: there are none, or too many, or some where none are taken; a name is not in
            lower_snake_case, too long, or there twice.
    """
    if context is not TaskContext.CUSTOM:
        require(not own, ".categories", "are those of the context: leave them out, or set it to custom")
        return _OF_CONTEXT[context]
    require(0 < len(own) <= _MOST, ".categories", f"must be 1 to {_MOST} where the context is custom")
    names: set[str] = set()
    for number, category in enumerate(own):
        place = f".categories[{number}].name"
        if not _NAME.fullmatch(category.name) or len(category.name) > _MAX_NAME_CHARACTERS:
            raise refuse(place, f"must be in lower_snake_case, at most {_MAX_NAME_CHARACTERS} characters")
        require(category.name not in names, place, "is there twice: name each category differently")
        names.add(category.name)
    return tuple(own)
