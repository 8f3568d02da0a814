"""User messages of a run: one JSON object each, derived from the state of the run alone.

All lists are bounded, so that messages do not grow with the run. Longer lists are shown in parts, another
part in each round.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.gateway.model import ResponseSchema
from peripety.testgen.asking.material import as_text
from peripety.testgen.model import DuplicateLevel, TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.quality import Mutant
    from peripety.testgen.loop.state import Round, RunState
    from peripety.testgen.model import Quality, TestCase, Verdict
    from peripety.testgen.subjects.subject import Target

__all__ = [
    "ASSESSMENT",
    "REFLECTION",
    "Missing",
    "assessment_question",
    "how_many",
    "reflection_question",
    "round_question",
]

T = TypeVar("T")

_MOST_LISTED = 20
_MOST_TESTS_LISTED = 60
_LINE_CHARACTERS = 200
_PART_CHARACTERS = 200
_OBSERVED_CHARACTERS = 400
_MOST_SAID = 5

_FIRST_ROUND = (3, 5)
_LATER_ROUNDS = (1, 3)
_REFINEMENT = (2, 5)


@dataclass(frozen=True, slots=True)
class Missing:
    """The measured gaps of the tests.

    Attributes:
        survivors: mutants that no test kills.
        uncovered: targets that no test covers.
        contradictions: ids of pairs of contradictory tests.
    """

    survivors: Sequence[Mutant] = ()
    uncovered: Sequence[Target] = ()
    contradictions: Sequence[tuple[str, str]] = ()


def how_many(state: RunState, this: Round) -> tuple[int, int]:
    """Return the minimum and maximum number of tests to request, within the target of the run."""
    config = state.order.config
    room = config.target_total_tests - len(state.written)
    if this.category is None:
        least, most = _REFINEMENT
    else:
        least, most = _FIRST_ROUND if this.number == 1 else _LATER_ROUNDS
        left = config.target_tests_per_category - len(state.of_category(this.category))
        room = min(room, left) if left > 0 else room
    most = max(1, min(most, room))
    return min(least, most), most


def round_question(state: RunState, this: Round, missing: Missing) -> str:
    """Return the message that requests the tests of a round.

    Args:
        state: the state before the round.
        this: the round.
        missing: the gaps measured before the round.
    """
    least, most = how_many(state, this)
    asked: dict[str, Any] = {"question": "tests"}
    if this.category is not None:
        asked["category"] = this.category
    asked |= {
        "round": this.number,
        "at_least": least,
        "at_most": most,
        **_existing(state, state.written),
        **_dropped(state),
    }
    asked |= _measured(state, missing)
    seen = state.looked_back.get(this.category)
    if seen is not None and seen.reflection is not None:
        reflection = seen.reflection
        asked["reflection"] = {
            "text": reflection.text,
            "recommendations": [*reflection.recommendations],
        }
    return as_text(asked)


def reflection_question(state: RunState, category: str, missing: Missing) -> str:
    """Return the message that requests a reflection on a category."""
    tests = [test for test in state.written if test.category == category]
    asked = {
        "question": "reflection",
        "category": category,
        "round": state.rounds[category],
        **_existing(state, tests),
    }
    return as_text(asked | _measured(state, missing))


def assessment_question(state: RunState, missing: Missing) -> str:
    """Return the message that requests an assessment of the whole run."""
    asked: dict[str, Any] = {
        "question": "assessment",
        **_existing(state, state.written),
        "by_category": {
            category.name: sum(test.category == category.name for test in state.written)
            for category in state.order.categories
        },
    }
    if state.quality is not None:
        asked["measured"] = _figures(state.quality)
    return as_text(asked | _measured(state, missing))


def _measured(state: RunState, missing: Missing) -> dict[str, Any]:
    """Return the measured gaps, without empty lists; long lists continue with each round."""
    turn = state.total_rounds - len(state.under_way)
    not_met = [
        (state.tests[test_id], verdict)
        for test_id, verdict in state.verdicts.items()
        if test_id in state.tests and verdict.examined.status is not TestStatus.PASSED
    ]
    lists = {
        "survivors": [_survivor(mutant) for mutant in _window(missing.survivors, turn)],
        "uncovered": [
            {"target": target.target_id, "description": _short(target.description)}
            for target in _window(missing.uncovered, turn)
        ],
        "not_met": [_not_met(test, verdict) for test, verdict in not_met[-_MOST_LISTED:]],
        "contradictions": [[*pair] for pair in missing.contradictions[-_MOST_LISTED:]],
    }
    told: dict[str, Any] = {name: entries for name, entries in lists.items() if entries}
    for name, count in (("survivors", len(missing.survivors)), ("uncovered", len(missing.uncovered))):
        if count > _MOST_LISTED:
            told[f"{name}_count"] = count
    return told


def _window(entries: Sequence[T], turn: int) -> Iterable[T]:
    """Return a bounded part of a list, which continues with each turn."""
    if len(entries) <= _MOST_LISTED:
        return entries
    start = turn * _MOST_LISTED % len(entries)
    return [*entries[start:], *entries[:start]][:_MOST_LISTED]


def _survivor(mutant: Mutant) -> dict[str, Any]:
    parts = {"operator": mutant.operator, "path": mutant.path}
    return {
        "mutant": mutant.mutant_id,
        # Most ids contain both, and tokens are expensive.
        **{name: part for name, part in parts.items() if part not in mutant.mutant_id},
        "before": _part(mutant.before),
        "after": _part(mutant.after),
    }


def _part(document: bytes | None) -> Any:
    """Return a part of a document; a long one as the beginning of its text."""
    if document is None:
        return None
    if len(document) <= _PART_CHARACTERS:
        return json.loads(document)
    return document.decode(errors="replace")[:_PART_CHARACTERS] + "…"


def _not_met(test: TestCase, verdict: Verdict) -> dict[str, Any]:
    """Return a failed test with its observed output and findings."""
    told = {
        "id": test.test_id,
        "category": test.category,
        "input": _short(test.input),
        "body": test.body,
        "expected_output": None if test.expected_output is None else _short(test.expected_output),
        "status": verdict.examined.status.value,
        "observed": verdict.examined.observed[:_OBSERVED_CHARACTERS],
        "findings": [_short(finding.message) for finding in verdict.findings[:_MOST_SAID]],
    }
    return {name: value for name, value in told.items() if value}


def _existing(state: RunState, tests: Sequence[TestCase]) -> dict[str, Any]:
    """Return the newest tests, one line each; baseline tests are only counted."""
    told: dict[str, Any] = {
        "existing_tests": [_line(state, test) for test in tests[-_MOST_TESTS_LISTED:]],
        "existing_count": len(tests),
    }
    combinatorial = len(state.tests) - len(state.written)
    return told | {"combinatorial_count": combinatorial} if combinatorial else told


def _dropped(state: RunState) -> dict[str, Any]:
    """Return the newest dropped tests, without those whose input equals that of a listed test."""
    tests = [
        event.test
        for event in state.dropped
        if event.level is not DuplicateLevel.CANONICAL and not event.test.is_combinatorial
    ]
    return {"dropped": [_line(state, test) for test in tests[-_MOST_LISTED:]]} if tests else {}


def _line(state: RunState, test: TestCase) -> str:
    verdict = state.verdicts.get(test.test_id)
    status = "" if verdict is None else f" ({verdict.examined.status.value})"
    expected = "" if test.expected_output is None else f" -> {test.expected_output}"
    return _short(f"[{test.test_id}]{status} {test.category}: {test.input}{expected}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"


def _figures(quality: Quality) -> dict[str, Any]:
    told: dict[str, Any] = {
        "coverage": {coverage.kind: [coverage.covered, coverage.reachable] for coverage in quality.coverage},
        "counting_tests": quality.counting_tests,
    }
    if quality.mutation is not None:
        told |= {"killed": quality.mutation.killed, "survived": quality.mutation.survived}
    return told


def _said(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}

REFLECTION = ResponseSchema(
    "reflection",
    _said(text=_TEXT, nothing_missing={"type": "boolean"}, recommendations=_TEXTS),
)
ASSESSMENT = ResponseSchema(
    "assessment",
    _said(
        text=_TEXT,
        score={"type": "integer", "minimum": 1, "maximum": 10},
        gaps=_TEXTS,
        recommendations=_TEXTS,
    ),
)
