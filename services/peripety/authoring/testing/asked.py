"""Parser of the prompt for tests: the request, and the tests that exist."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Asked"]

_LINE = re.compile(r"\[[^\]]*\](?: \(\w+\))? \w+: (?P<rest>.*)", re.DOTALL)
_CUT = "…"
_MOST = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """Request for tests.

    Attributes:
        category: the requested category; None for any.
        categories: the names of all categories, in order.
        round: the number of the round, from 1.
        least: the minimum number of tests.
        most: the maximum number of tests.
        existing: one line for each earlier test: its input and its expected output.
        survivors: mutants of the subject that no test detects, as `variants` accepts them.
        uncovered: ids of parts of the subject that no test reaches.
    """

    category: str | None
    categories: tuple[str, ...]
    round: int = 1
    least: int = 1
    most: int = _MOST
    existing: tuple[str, ...] = ()
    survivors: tuple[Mapping[str, Any], ...] = ()
    uncovered: tuple[str, ...] = ()

    @classmethod
    def of(cls, material: Mapping[str, Any], question: Mapping[str, Any]) -> Asked:
        """Parse a request with its material."""
        before = [*question.get("existing_tests", ()), *question.get("dropped", ())]
        lines = (_LINE.fullmatch(line) for line in before)
        return cls(
            question.get("category"),
            tuple(category["name"] for category in material["categories"]),
            question.get("round", 1),
            question.get("at_least", 1),
            question.get("at_most", _MOST),
            tuple(line["rest"] for line in lines if line),
            tuple(question.get("survivors", ())),
            tuple(one["target"] for one in question.get("uncovered", ())),
        )

    def has(self, given: str) -> bool:
        """Return True if an earlier test has this input; its line may be truncated."""
        text = " ".join(given.split())
        return any(
            line == text
            or line.startswith(f"{text} -> ")
            or (line.endswith(_CUT) and text.startswith(line.removesuffix(_CUT)))
            for line in self.existing
        )
