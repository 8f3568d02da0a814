"""What a question about tests says, and what is known of the tests that there are."""

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
    """A question about tests.

    Attributes:
        category: of what kind they are to be; None for any.
        categories: the names of all kinds, in order.
        round: the number of the round, from 1.
        least: how many there should be.
        most: how many there may be.
        existing: what tests that were written before give, and what they expect, a line each.
        survivors: wrong versions of the subject that none of them notices, as `variants` takes them.
        uncovered: ids of parts of the subject that none of them reaches.
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
        """A question as it is put, with what it is about."""
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
        """Whether a test that gives this was written before, as far as its line shows."""
        text = " ".join(given.split())
        return any(
            line == text
            or line.startswith(f"{text} -> ")
            or (line.endswith(_CUT) and text.startswith(line.removesuffix(_CUT)))
            for line in self.existing
        )
