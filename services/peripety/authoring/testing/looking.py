"""What is missing of the tests that there are, by what could still be written and by what was measured."""

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
"""What words alone can say of tests: nobody has seen them fail on anything."""


def reflection(material: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """What is missing in a category: what would be written next.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, of a round that is over.
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
    """How good all tests are together: the share of what was measured that they reach.

    Where nothing was, it is the share of what could be written from what is known.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, with `by_category`, and `measured` where tests were run.
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
        told = f"Tests: {there}, and none of them was run"
    gaps = [f"There is no test of {name}" for name, count in by_category.items() if not count]
    gaps += [f"Not reached: {one['description']}" for one in question.get("uncovered", ())]
    gaps += [f"Not noticed: {one['mutant']}" for one in question.get("survivors", ())]
    return {
        "text": f"{told} {MARK}.",
        "score": 1 + int((best - 1) * share),
        "gaps": [gap[:_LONGEST] for gap in gaps[:_MOST]],
        "recommendations": [_recommended(test) for test in tests],
    }


def _further(material: Mapping[str, Any], question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What another round would write."""
    return write_tests(material, {**question, "round": 2, "at_least": 1, "at_most": _MOST})


def _recommended(test: Mapping[str, Any]) -> str:
    return f"{test['input']}: {test['reasoning']}"[:_LONGEST]


def _measured(figures: Mapping[str, Any]) -> tuple[int, int]:
    """How much of what could be measured is reached, and how much there is."""
    coverage = [*figures.get("coverage", {}).values()]
    killed, survived = figures.get("killed", 0), figures.get("survived", 0)
    reached = sum(covered for covered, _ in coverage) + killed
    return reached, sum(reachable for _, reachable in coverage) + killed + survived
