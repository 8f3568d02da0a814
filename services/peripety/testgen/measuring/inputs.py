"""When two inputs are the same, and when they hardly differ."""

from __future__ import annotations

import json
import re
import unicodedata
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.sim import canonical

if TYPE_CHECKING:
    from peripety.testgen.model import TestCase
    from peripety.testgen.subjects.subject import Subject

__all__ = ["MOST_COMPARED", "are_near", "canonical_text", "folded", "input_text"]

MOST_COMPARED = 2_000
"""Characters of the longest texts that are compared for nearness, which takes as long as their square."""

_NEAR = 0.95
_APART = 20
"""Of so many characters of two texts that are near, one at most is not matched."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def folded(text: str) -> str:
    """A text without what two people would write differently: case, white space, forms of one character."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def canonical_text(value: Any) -> str:
    """The same text for the same JSON."""
    try:
        return canonical(value).decode()
    except InvalidArgumentError:  # beyond the engine's numbers, which a model may write all the same
        return json.dumps(value, sort_keys=True)


def input_text(subject: Subject | None, test: TestCase) -> str:
    """What a test gives, without what it expects, the same for the same input."""
    if subject is None or test.body is None:
        return folded(test.input)
    if subject.problems(test.body):  # there may be nothing in it that its subject could find
        return canonical_text(test.body)
    return canonical_text(subject.same_input(test.body))


def are_near(one: str, other: str) -> bool:
    """Whether two inputs hardly differ. Another number is another input."""
    if max(len(one), len(other)) > MOST_COMPARED or _NUMBER.findall(one) != _NUMBER.findall(other):
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    is_possible = all(ratio() >= _NEAR for ratio in (matcher.real_quick_ratio, matcher.quick_ratio))
    # What it matches is left of both texts, so that far fewer are left to be matched, which takes long.
    return (
        is_possible and _is_left(one, other, (len(one) + len(other)) // _APART) and matcher.ratio() >= _NEAR
    )


def _is_left(one: str, other: str, most: int) -> bool:
    """Whether the same is left of two texts when at most so many characters of both are taken out.

    By E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986): texts that have
    little in common take no longer than those that hardly differ.
    """
    furthest = [0] * (2 * most + 3)  # on each diagonal; the last ones are those before the first
    for out in range(most + 1):
        for diagonal in range(-out, out + 1, 2):
            down, right = furthest[diagonal + 1], furthest[diagonal - 1] + 1
            at = down if diagonal == -out or (diagonal != out and right <= down) else right
            while at < len(one) and at - diagonal < len(other) and one[at] == other[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            if at >= len(one) and at - diagonal >= len(other):
                return True
    return False
