"""Candidate tests of the offline test author: the parsed request, and the selection among candidates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.languages import OFFLINE_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_LINE = re.compile(r"\[[^\]]*\](?: \(\w+\))? \w+: (?P<rest>.*)", re.DOTALL)
_CUT = "…"
_DEFAULT_MAX_TESTS = 5


@dataclass(frozen=True, slots=True)
class AuthoringRequest:
    """Request for tests.

    Attributes:
        category: the requested category; None for any.
        categories: the names of all categories, in order.
        round: the number of the round, from 1.
        min_tests: the minimum number of tests.
        max_tests: the maximum number of tests.
        existing_lines: one line for each earlier test: its input and its expected output.
        survivors: mutants of the subject that no test detects, as `variants` accepts them.
        uncovered: ids of parts of the subject that no test reaches.
    """

    category: str | None
    categories: tuple[str, ...]
    round: int = 1
    min_tests: int = 1
    max_tests: int = _DEFAULT_MAX_TESTS
    existing_lines: tuple[str, ...] = ()
    survivors: tuple[Mapping[str, Any], ...] = ()
    uncovered: tuple[str, ...] = ()

    @classmethod
    def from_prompt(cls, material: Mapping[str, Any], question: Mapping[str, Any]) -> AuthoringRequest:
        """Parse a request with its material."""
        before = [*question.get("existing_tests", ()), *question.get("dropped", ())]
        lines = (_LINE.fullmatch(line) for line in before)
        return cls(
            question.get("category"),
            tuple(category["name"] for category in material["categories"]),
            question.get("round", 1),
            question.get("at_least", 1),
            question.get("at_most", _DEFAULT_MAX_TESTS),
            tuple(line["rest"] for line in lines if line),
            tuple(question.get("survivors", ())),
            tuple(one["target"] for one in question.get("uncovered", ())),
        )

    def has_test(self, given: str) -> bool:
        """Return True if an earlier test has this input; its line may be truncated."""
        text = " ".join(given.split())
        return any(
            line == text
            or line.startswith(f"{text} -> ")
            or (line.endswith(_CUT) and text.startswith(line.removesuffix(_CUT)))
            for line in self.existing_lines
        )


_MAX_NAME = 48


@dataclass(frozen=True, slots=True)
class CandidateDetails:
    """Test without input and category.

    Attributes:
        name: its name in lower_snake_case.
        why: the mistake it would detect.
        expected: the expected output; None if only the run matters.
        body: the steps to run; None for a test in words.
        confidence: confidence in the expectation, 0 to 1.
    """

    name: str
    why: str
    expected: str | None = None
    body: dict[str, Any] | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """Candidate test.

    Attributes:
        input_text: its input as readable text; unique among all candidates.
        categories: the test categories it belongs to.
        gains: the requested targets it would reach.
        write: builds the rest of the test.
        labels: what else it would reach; the first round of a category covers each of these.
        size: its size; a smaller test is preferred.
    """

    input_text: str
    categories: frozenset[str]
    gains: frozenset[str]
    write: Callable[[], CandidateDetails]
    labels: frozenset[str] = frozenset()
    size: int = 1


def choose(sketches: Iterable[Candidate], asked: AuthoringRequest) -> list[dict[str, Any]]:
    """Return the tests to write: greedy set cover over the targets that no earlier test reaches.

    The first round is filled up with tests that show something new; later rounds only cover requested
    targets. If no candidate belongs to any known category, all candidates are eligible.
    """
    left = [sketch for sketch in sketches if not asked.has_test(sketch.input_text)]
    if asked.category is not None and any(
        sketch.categories.intersection(asked.categories) for sketch in left
    ):
        left = [sketch for sketch in left if asked.category in sketch.categories]
    tests: list[dict[str, Any]] = []
    gained: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    while left and len(tests) < asked.max_tests:
        best = max(
            left,
            key=lambda one: (len(one.gains - gained) / (4 + one.size), len(one.labels - shown), -one.size),
        )
        is_filling = asked.round == 1 and len(tests) < asked.min_tests
        if not best.gains - gained and not (is_filling and best.labels - shown):
            break
        left = [one for one in left if one.input_text != best.input_text]
        gained |= best.gains
        shown |= best.labels
        tests.append(_build_test(best, asked))
    return tests


def _build_test(sketch: Candidate, asked: AuthoringRequest) -> dict[str, Any]:
    written = sketch.write()
    test: dict[str, Any] = {"id": written.name[:_MAX_NAME].strip("_")}
    if asked.category is None:
        named = (name for name in asked.categories if name in sketch.categories)
        test["category"] = next(named, asked.categories[0])
    test["input"] = sketch.input_text
    if written.body is not None:
        test["body"] = written.body
    return test | {
        "expected_output": written.expected,
        "reasoning": f"{written.why} {OFFLINE_MARK}",
        "confidence": written.confidence,
    }
