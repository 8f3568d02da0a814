"""Rounds of the offline test author: tests by subject, reflection and assessment.

A test expects only what is known from the task's words, its files, and the engine where it decides. Without
such a fact, no test is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.author.test_author.candidates import AuthoringRequest, choose
from peripety.author.test_author.command_tests import command_candidates, text_candidates
from peripety.author.test_author.policy_tests import policy_candidates
from peripety.author.test_author.scenario_tests import scenario_candidates
from peripety.author.text_analysis.languages import OFFLINE_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.author.test_author.candidates import Candidate


def write_tests(material: Mapping[str, Any], question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the next tests, up to the requested number; empty if none are left.

    Args:
        material: `task`, `categories`, and optionally `environment` and `subject`.
        question: the request, with optional fields: `category`, `round`, `at_least`, `at_most`,
            `existing_tests`, `survivors` and `uncovered`.

    Returns:
        Tests with `id`, `input`, `expected_output`, `reasoning` and `confidence`; with a `body` if they can
        be run, and a `category` if none is requested.

    Raises:
        PeripetyError: the engine rejects the document under test.
    """
    asked = AuthoringRequest.from_prompt(material, question)
    return choose(_candidates_for(material, asked), asked)


def _candidates_for(material: Mapping[str, Any], asked: AuthoringRequest) -> Iterable[Candidate]:
    subject = material.get("subject") or {}
    match subject:
        case {"kind": "scenario", "scenario": dict(document)}:
            return scenario_candidates(document, asked)
        case {"kind": "policy", "policy": dict(document)}:
            return policy_candidates(document, asked)
        case {"kind": "command", "command": [*_]}:
            return command_candidates(material["task"], subject, material.get("environment") or {})
    return text_candidates(material["task"], material.get("environment") or {}, asked.categories)


_MAX_ITEMS = 5
_MAX_ITEM_LENGTH = 300
_MAX_SCORE = 10
_MAX_UNMEASURED_SCORE = 8
"""The maximum score of tests that were never run."""


def reflect_on_tests(material: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gaps of a category: the tests that would be written next.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, of a completed round.
    """
    tests = _next_tests(material, question)
    there, category = question.get("existing_count", 0), question.get("category")
    left = f"{len(tests)} more follow" if tests else "Nothing more follows"
    return {
        "text": f"Tests of {category}: {there}. {left} from what is known {OFFLINE_MARK}.",
        "nothing_missing": not tests,
        "recommendations": [_format_recommendation(test) for test in tests],
    }


def assess_tests(material: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score of all tests: the share of measured parts that they reach.

    Without measurements, it is the share of the tests that could be written.

    Args:
        material: as for `write_tests`.
        question: as for `write_tests`, with `by_category`, and `measured` if the tests were run.
    """
    tests = _next_tests(material, question)
    by_category: Mapping[str, int] = question.get("by_category", {})
    reached, all_there_is = _count_reached(question.get("measured") or {})
    if all_there_is:
        best, share = _MAX_SCORE, reached / all_there_is
        told = f"{reached} of {all_there_is} parts and mistakes are reached"
    else:
        there = question.get("existing_count", 0)
        with_tests = sum(count > 0 for count in by_category.values()) / max(1, len(by_category))
        best, share = _MAX_UNMEASURED_SCORE, with_tests * there / max(1, there + len(tests))
        told = f"Tests: {there}, never run"
    gaps = [f"no test of {name}" for name, count in by_category.items() if not count]
    gaps += [f"Not reached: {one['description']}" for one in question.get("uncovered", ())]
    gaps += [f"Not noticed: {one['mutant']}" for one in question.get("survivors", ())]
    return {
        "text": f"{told} {OFFLINE_MARK}.",
        "score": 1 + int((best - 1) * share),
        "gaps": [gap[:_MAX_ITEM_LENGTH] for gap in gaps[:_MAX_ITEMS]],
        "recommendations": [_format_recommendation(test) for test in tests],
    }


def _next_tests(material: Mapping[str, Any], question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tests of another round."""
    return write_tests(material, {**question, "round": 2, "at_least": 1, "at_most": _MAX_ITEMS})


def _format_recommendation(test: Mapping[str, Any]) -> str:
    return f"{test['input']}: {test['reasoning']}"[:_MAX_ITEM_LENGTH]


def _count_reached(figures: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of reached parts, and the number of all measurable parts."""
    coverage = [*figures.get("coverage", {}).values()]
    killed, survived = figures.get("killed", 0), figures.get("survived", 0)
    reached = sum(covered for covered, _ in coverage) + killed
    return reached, sum(reachable for _, reachable in coverage) + killed + survived
