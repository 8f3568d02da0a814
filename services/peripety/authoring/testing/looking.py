"""Reflection on existing tests: gaps, from measurements and from tests that could still be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.languages import MARK
from peripety.authoring.testing.writing import write_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["assessment", "reflection"]

_MOST = 5
_LONGEST = 300
_BEST = 10
_BEST_UNMEASURED = 8
"""The maximum score of tests that were never run."""


def reflection(material: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gaps of a category: the tests that would be written next.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, of a completed round.
    """
    tests = _further(material, question)
    there, category = question.get("existing_count", 0), question.get("category")
    left = f"{len(tests)} more follow" if tests else "Nothing more follows"
    return {
        "text": f"Tests of {category}: {there}. {left} from what is known {MARK}.",
        "nothing_missing": not tests,
        "recommendations": [_recommended(test) for test in tests],
    }


def assessment(material: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score of all tests: the share of measured parts that they reach.

    Without measurements, it is the share of the tests that could be written.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, with `by_category`, and `measured` if the tests were run.
    """
    tests = _further(material, question)
    by_category: Mapping[str, int] = question.get("by_category", {})
    reached, all_there_is = _measured(question.get("measured") or {})
    if all_there_is:
        best, share = _BEST, reached / all_there_is
        told = f"{reached} of {all_there_is} parts and mistakes are reached"
    else:
        there = question.get("existing_count", 0)
        with_tests = sum(count > 0 for count in by_category.values()) / max(1, len(by_category))
        best, share = _BEST_UNMEASURED, with_tests * there / max(1, there + len(tests))
        told = f"Tests: {there}, never run"
    gaps = [f"no test of {name}" for name, count in by_category.items() if not count]
    gaps += [f"Not reached: {one['description']}" for one in question.get("uncovered", ())]
    gaps += [f"Not noticed: {one['mutant']}" for one in question.get("survivors", ())]
    return {
        "text": f"{told} {MARK}.",
        "score": 1 + int((best - 1) * share),
        "gaps": [gap[:_LONGEST] for gap in gaps[:_MOST]],
        "recommendations": [_recommended(test) for test in tests],
    }


def _further(material: Mapping[str, Any], question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tests of another round."""
    return write_tests(material, {**question, "round": 2, "at_least": 1, "at_most": _MOST})


def _recommended(test: Mapping[str, Any]) -> str:
    return f"{test['input']}: {test['reasoning']}"[:_LONGEST]


def _measured(figures: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of reached parts, and the number of all measurable parts."""
    coverage = [*figures.get("coverage", {}).values()]
    killed, survived = figures.get("killed", 0), figures.get("survived", 0)
    reached = sum(covered for covered, _ in coverage) + killed
    return reached, sum(reachable for _, reachable in coverage) + killed + survived
