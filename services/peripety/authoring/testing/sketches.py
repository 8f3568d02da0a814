"""Tests that could be written, and which of them are."""

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
    """A test without its input and its category.

    Attributes:
        name: in lower_snake_case.
        why: which mistake it would catch.
        expected: what has to come out; None when only the run itself matters.
        body: how it is run; None for text only.
        confidence: how sure it is that what is expected is right, 0 to 1.
    """

    name: str
    why: str
    expected: str | None = None
    body: dict[str, Any] | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Sketch:
    """A test that could be written.

    Attributes:
        given: what it gives, for a person; names it among all.
        fits: the kinds of tests that it is one of.
        gains: what it would reach that is asked for.
        write: makes the rest of it.
        shows: what it would reach besides, of which a first look at a kind should see something.
        size: how much of it there is; the smaller of two equals is better.
    """

    given: str
    fits: frozenset[str]
    gains: frozenset[str]
    write: Callable[[], Written]
    shows: frozenset[str] = frozenset()
    size: int = 1


def chosen(sketches: Iterable[Sketch], asked: Asked) -> list[dict[str, Any]]:
    """The tests to write: those that reach most of what is asked for and no test before them reaches.

    A first round is filled up with what shows something else; later ones only with what was asked for. Of a
    kind that nothing here is known to be of, anything will do.

    Args:
        sketches: the simplest first.
        asked: how many, of which kind, and which there are.
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
