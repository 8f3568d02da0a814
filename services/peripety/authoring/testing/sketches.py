"""Candidate tests, and the selection among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.languages import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from peripety.authoring.testing.asked import Asked

__all__ = ["Sketch", "Written", "chosen"]

_LONGEST_NAME = 48


@dataclass(frozen=True, slots=True)
class Written:
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
class Sketch:
    """Candidate test.

    Attributes:
        given: its input as readable text; unique among all candidates.
        fits: the test categories it belongs to.
        gains: the requested targets it would reach.
        write: builds the rest of the test.
        shows: what else it would reach; the first round of a category covers each of these.
        size: its size; a smaller test is preferred.
    """

    given: str
    fits: frozenset[str]
    gains: frozenset[str]
    write: Callable[[], Written]
    shows: frozenset[str] = frozenset()
    size: int = 1


def chosen(sketches: Iterable[Sketch], asked: Asked) -> list[dict[str, Any]]:
    """Return the tests to write: greedy set cover over the targets that no earlier test reaches.

    The first round is filled up with tests that show something new; later rounds only cover requested
    targets. If no candidate belongs to any known category, all candidates are eligible.
    """
    left = [sketch for sketch in sketches if not asked.has(sketch.given)]
    if asked.category is not None and any(sketch.fits.intersection(asked.categories) for sketch in left):
        left = [sketch for sketch in left if asked.category in sketch.fits]
    tests: list[dict[str, Any]] = []
    gained: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    while left and len(tests) < asked.most:
        best = max(
            left,
            key=lambda one: (len(one.gains - gained) / (4 + one.size), len(one.shows - shown), -one.size),
        )
        is_filling = asked.round == 1 and len(tests) < asked.least
        if not best.gains - gained and not (is_filling and best.shows - shown):
            break
        left = [one for one in left if one.given != best.given]
        gained |= best.gains
        shown |= best.shows
        tests.append(_test(best, asked))
    return tests


def _test(sketch: Sketch, asked: Asked) -> dict[str, Any]:
    written = sketch.write()
    test: dict[str, Any] = {"id": written.name[:_LONGEST_NAME].strip("_")}
    if asked.category is None:
        named = (name for name in asked.categories if name in sketch.fits)
        test["category"] = next(named, asked.categories[0])
    test["input"] = sketch.given
    if written.body is not None:
        test["body"] = written.body
    return test | {
        "expected_output": written.expected,
        "reasoning": f"{written.why} {MARK}",
        "confidence": written.confidence,
    }
