"""Test categories of each task context."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.requests import refuse, require
from peripety.testgen.model import Category, TaskContext

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["categories_of"]

_EXISTENCE = Category("existence", "The required result exists, in the required place and form.")
_CORRECTNESS = Category("correctness", "The output is right, for usual inputs and for unusual ones.")
_BOUNDARY = Category(
    "boundary",
    "Both sides of every limit: the value at the limit, the nearest one beyond it, nothing at all, the"
    " largest, and inputs that are not valid.",
)

_OF_CONTEXT = {
    TaskContext.BENCHMARK: (
        Category(
            "anti_cheat",
            "A fake solution fails: one that returns fixed answers, that looks up a result instead of"
            " computing it, or that uses a prohibited tool.",
        ),
        _EXISTENCE,
        _CORRECTNESS,
        _BOUNDARY,
        Category("integration", "The parts work together: one uses what another has made, in any order."),
    ),
    TaskContext.PROMPT: (_EXISTENCE, _CORRECTNESS, _BOUNDARY),
    TaskContext.SCENARIO: (
        Category("actions", "An allowed action has exactly its described effects, and no others."),
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
            "Events occur exactly when they should, with the effects that they should have.",
        ),
        Category(
            "endings",
            "Each end is reached when its condition holds and not a turn earlier; ways past it are tried.",
        ),
    ),
    TaskContext.POLICY: (
        Category("allowed", "Requests that the rules permit are allowed."),
        Category("denied", "Requests that the rules forbid or do not cover are denied."),
        Category("escalated", "Requests that a person has to decide are escalated."),
        Category(
            "boundary",
            "Both sides of every limit: the value at which a rule begins to apply, and its neighbours.",
        ),
        Category(
            "evasion",
            "Requests that try to evade a rule: different spellings of the same value, neighbours"
            " whose names begin the same way, missing and superfluous arguments.",
        ),
    ),
    TaskContext.CUSTOM: (),
}

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MOST = 20
_MAX_NAME_CHARACTERS = 64


def categories_of(context: TaskContext, own: Sequence[Category] = ()) -> tuple[Category, ...]:
    """Return the categories of a run, in order.

    Args:
        context: the task context.
        own: custom categories; required for `TaskContext.CUSTOM`, rejected for any other context.

    Raises:
        InvalidArgumentError: custom categories are missing, too many, or not allowed by the context; or a
            name is not in lower_snake_case, too long, or repeated.
    """
    if context is not TaskContext.CUSTOM:
        require(not own, ".categories", "are fixed by the context; leave them out, or use custom")
        return _OF_CONTEXT[context]
    require(0 < len(own) <= _MOST, ".categories", f"must be 1 to {_MOST} where the context is custom")
    names: set[str] = set()
    for number, category in enumerate(own):
        place = f".categories[{number}].name"
        if not _NAME.fullmatch(category.name) or len(category.name) > _MAX_NAME_CHARACTERS:
            raise refuse(place, f"must be in lower_snake_case, at most {_MAX_NAME_CHARACTERS} characters")
        require(category.name not in names, place, "is repeated; choose a unique name")
        names.add(category.name)
    return tuple(own)
