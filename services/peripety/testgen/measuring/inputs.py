"""Equality and similarity of test inputs."""

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
"""Maximum length of texts that are compared for similarity, which takes quadratic time."""

_NEAR = 0.95
_APART = 20
"""At most one of so many characters of two similar texts is unmatched."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def folded(text: str) -> str:
    """Return a text normalized for comparison: Unicode form, case and white space."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def canonical_text(value: Any) -> str:
    """Return the canonical text of a JSON value."""
    try:
        return canonical(value).decode()
    except InvalidArgumentError:  # a model may write numbers beyond the engine's range
        return json.dumps(value, sort_keys=True)


def input_text(subject: Subject | None, test: TestCase) -> str:
    """Return the canonical text of the input of a test, without its expectations."""
    if subject is None or test.body is None:
        return folded(test.input)
    if subject.problems(test.body):  # an invalid body has no defined input
        return canonical_text(test.body)
    return canonical_text(subject.same_input(test.body))


def are_near(one: str, other: str) -> bool:
    """Return True if two inputs are nearly equal. Different numbers make inputs different."""
    if max(len(one), len(other)) > MOST_COMPARED or _NUMBER.findall(one) != _NUMBER.findall(other):
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    is_possible = all(ratio() >= _NEAR for ratio in (matcher.real_quick_ratio, matcher.quick_ratio))
    # The matcher is slow; a bound on the edit distance rules out most pairs before it.
    return (
        is_possible and _is_left(one, other, (len(one) + len(other)) // _APART) and matcher.ratio() >= _NEAR
    )


def _is_left(one: str, other: str, most: int) -> bool:
    """Return True if two texts are equal after deleting at most so many characters of both.

    The algorithm is by E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1
    (1986). The bound makes very different texts as fast as similar ones.
    """
    furthest = [0] * (2 * most + 3)  # by diagonal; negative diagonals are at the end
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
