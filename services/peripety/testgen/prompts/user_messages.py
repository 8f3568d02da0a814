"""User messages and system text of a run: JSON objects derived from the state of the run alone.

All lists are bounded, so that messages do not grow with the run. Longer lists are shown in parts, another
part in each round.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.text_files import read_prompt, read_prompts
from peripety.gateway.types.request import ResponseSchema
from peripety.testgen.run.state import GenerationRound
from peripety.testgen.types import DuplicateLevel, RunProfile, TestStatus

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.run.state import GenerationState
    from peripety.testgen.subjects.subject import Subject, SubjectTarget
    from peripety.testgen.types import CaseVerdict, SuiteQuality, TaskEnvironment, TestCase, TestGenOrder


load_prompt = partial(read_prompt, "peripety.testgen")
load_prompts = partial(read_prompts, "peripety.testgen")


_MAX_PREVIEW_CHARACTERS = 1_500
_MAX_TOTAL_PREVIEW_CHARACTERS = 12_000
_MAX_OUTLINE_ENTRIES = 40


def render_system_text(order: TestGenOrder, subject: Subject | None, *, has_sources: bool = True) -> str:
    """Return the system text of all calls of a run, with identical bytes in each.

    Args:
        order: the input of the run.
        subject: the subject of the tests; None for text only.
        has_sources: False to leave out the sources of the subject.
    """
    material: dict[str, Any] = {
        "task": order.description,
        "categories": [
            {"name": category.name, "description": category.description} for category in order.categories
        ],
    }
    about = {} if subject is None else subject.material
    if order.environment is not None:
        shown = {source["file"] for source in about.get("sources", ())}
        material["environment"] = _environment_material(order.environment, shown)
    if subject is not None:
        left_out = () if has_sources else ("sources",)
        shown_parts = {name: part for name, part in about.items() if name not in left_out}
        material["subject"] = {"kind": subject.kind.value, **shown_parts}
    return f"{load_prompt('system')}\n{to_compact_json(material)}"


def to_compact_json(value: Any) -> str:
    """Return JSON in one line, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _environment_material(environment: TaskEnvironment, shown: Container[str]) -> dict[str, Any]:
    """Return the known facts about the environment; files in `shown` are given without their texts."""
    left = _MAX_TOTAL_PREVIEW_CHARACTERS
    files = []
    for file in environment.files:
        is_shown = file.path in shown
        preview = "" if is_shown else file.preview[: min(_MAX_PREVIEW_CHARACTERS, left)]
        left -= len(preview)
        told = {
            "path": file.path,
            "size_bytes": file.size_bytes,
            "structure": [] if is_shown else [*file.structure[:_MAX_OUTLINE_ENTRIES]],
            "preview": preview,
        }
        files.append({name: value for name, value in told.items() if value})
    told = {
        "platform": environment.platform,
        "languages": [*environment.languages],
        "available_tools": [*environment.available_tools],
        "prohibited_tools": [*environment.prohibited_tools],
        "files": files,
        "file_count": environment.file_count,
        "cpu_count": environment.cpu_count,
        "memory_bytes": environment.memory_bytes,
    }
    return {name: value for name, value in told.items() if value}


T = TypeVar("T")

MAX_LISTED = 20
"""Number of gaps of a kind that a message lists."""

_MAX_LISTED_TESTS = 60
_MAX_LINE_CHARACTERS = 200
_MAX_PART_CHARACTERS = 200
_MAX_OBSERVED_CHARACTERS = 400
_MAX_FINDINGS = 5

_FIRST_ROUND_COUNTS = (3, 5)
_LATER_ROUND_COUNTS = (1, 3)
_REFINEMENT_COUNTS = (2, 5)
_LARGE_REFINEMENT_COUNTS = (5, 10)


@dataclass(frozen=True, slots=True)
class SuiteGaps:
    """The measured gaps of the tests.

    Attributes:
        survivors: mutants in covered places that no test kills.
        uncovered: targets that no test covers.
        contradictions: ids of pairs of contradictory tests.
    """

    survivors: Sequence[Mutant] = ()
    uncovered: Sequence[SubjectTarget] = ()
    contradictions: Sequence[tuple[str, str]] = ()


def requested_counts(state: GenerationState, this: GenerationRound) -> tuple[int, int]:
    """Return the minimum and maximum number of tests to request, within the target of the run."""
    config = state.order.config
    room = config.target_total_tests - len(state.lasting_tests)
    if this.category is None and this.number == 1 and config.profile is RunProfile.DIRECT:
        least, most = config.min_total_tests, room
    elif this.category is None:
        least, most = _LARGE_REFINEMENT_COUNTS if state.has_few_calls else _REFINEMENT_COUNTS
    else:
        is_large = this.number == 1 or state.has_few_calls
        least, most = _FIRST_ROUND_COUNTS if is_large else _LATER_ROUND_COUNTS
        left = config.target_tests_per_category - len(state.tests_of_category(this.category))
        room = min(room, left) if left > 0 else room
    most = max(1, min(most, room))
    return min(least, most), most


def round_message(
    state: GenerationState,
    this: GenerationRound,
    missing: SuiteGaps,
    unshown: Subject | None = None,
) -> str:
    """Return the message that requests the tests of a round.

    Args:
        state: the state before the round.
        this: the round.
        missing: the gaps measured before the round.
        unshown: the subject whose sources are not in the system text; None if they are, or if it has none.
    """
    least, most = requested_counts(state, this)
    asked: dict[str, Any] = {"question": "tests"}
    if this.category is not None:
        asked["category"] = this.category
    asked |= {
        "round": this.number,
        "at_least": least,
        "at_most": most,
        **_existing_tests(state, state.model_tests),
        **_dropped_tests(state),
    }
    shown = _shown_gaps(state, missing)
    asked |= _measured_gaps(state, missing, shown)
    if unshown is not None:
        first = state.order.categories[0].name
        is_first = not state.model_tests and this in {GenerationRound(None, 1), GenerationRound(first, 1)}
        asked |= {"sources": unshown.material["sources"]} if is_first else _excerpts(unshown, shown)
    seen = state.last_reflections.get(this.category)
    if seen is not None and seen.reflection is not None:
        reflection = seen.reflection
        asked["reflection"] = {
            "text": reflection.text,
            "recommendations": [*reflection.recommendations],
        }
    return to_compact_json(asked)


def reflection_message(
    state: GenerationState,
    category: str,
    missing: SuiteGaps,
    unshown: Subject | None = None,
) -> str:
    """Return the message that requests a reflection on a category; see `round_message`."""
    tests = [test for test in state.model_tests if test.category == category]
    asked = {
        "question": "reflection",
        "category": category,
        "round": state.rounds[category],
        **_existing_tests(state, tests),
    }
    shown = _shown_gaps(state, missing)
    asked |= _measured_gaps(state, missing, shown)
    return to_compact_json(asked if unshown is None else asked | _excerpts(unshown, shown))


def assessment_message(state: GenerationState, missing: SuiteGaps) -> str:
    """Return the message that requests an assessment of the whole run."""
    asked: dict[str, Any] = {
        "question": "assessment",
        **_existing_tests(state, state.model_tests),
        "by_category": {
            category.name: sum(test.category == category.name for test in state.model_tests)
            for category in state.order.categories
        },
    }
    if state.quality is not None:
        asked["measured"] = _quality_figures(state.quality)
    return to_compact_json(asked | _measured_gaps(state, missing, _shown_gaps(state, missing)))


def _shown_gaps(state: GenerationState, missing: SuiteGaps) -> SuiteGaps:
    """Return the part of the measured gaps that a message lists; long lists continue with each round."""
    turn = state.total_rounds - len(state.active_rounds)
    return SuiteGaps(
        _rotating_window(_leading_first(missing.survivors), turn),
        _rotating_window(missing.uncovered, turn),
        missing.contradictions[-MAX_LISTED:],
    )


def _excerpts(subject: Subject, shown: SuiteGaps) -> dict[str, Any]:
    """Return the sources around the listed gaps, if there are any."""
    survivors, uncovered = ([gap.path for gap in gaps] for gaps in (shown.survivors, shown.uncovered))
    excerpts = subject.excerpts([*survivors, *uncovered])
    return {"excerpts": excerpts} if excerpts else {}


def _measured_gaps(state: GenerationState, missing: SuiteGaps, shown: SuiteGaps) -> dict[str, Any]:
    """Return the measured gaps, without empty lists; of long lists the part that is shown."""
    not_met = [
        (state.tests[test_id], verdict)
        for test_id, verdict in state.verdicts.items()
        if test_id in state.tests
        and test_id not in state.superseded
        and verdict.examined.status is not TestStatus.PASSED
    ]
    lists = {
        "survivors": [_describe_survivor(mutant) for mutant in shown.survivors],
        "uncovered": [
            {"target": target.target_id, "description": _shorten(target.description)}
            for target in shown.uncovered
        ],
        "not_met": [_describe_unmet(test, verdict) for test, verdict in not_met[-MAX_LISTED:]],
        "contradictions": [[*pair] for pair in shown.contradictions],
    }
    told: dict[str, Any] = {name: entries for name, entries in lists.items() if entries}
    for name, count in (("survivors", len(missing.survivors)), ("uncovered", len(missing.uncovered))):
        if count > MAX_LISTED:
            told[f"{name}_count"] = count
    return told


def _rotating_window(entries: Sequence[T], turn: int) -> Sequence[T]:
    """Return a bounded part of a list, which continues with each turn."""
    if len(entries) <= MAX_LISTED:
        return entries
    start = turn * MAX_LISTED % len(entries)
    return [*entries[start:], *entries[:start]][:MAX_LISTED]


def _leading_first(survivors: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants in the order in which they help: one of each place, and changed texts last."""
    seen: Counter[str] = Counter()
    ranks = []
    for mutant in survivors:
        ranks.append((seen[mutant.path], mutant.operator == "change_text"))
        seen[mutant.path] += 1
    order = sorted(range(len(survivors)), key=lambda index: ranks[index][::-1])
    return [survivors[index] for index in order]


def _describe_survivor(mutant: Mutant) -> dict[str, Any]:
    parts = {"operator": mutant.operator, "path": mutant.path}
    return {
        "mutant": mutant.mutant_id,
        # Most ids contain both, and tokens are expensive.
        **{name: part for name, part in parts.items() if part not in mutant.mutant_id},
        "before": _decode_part(mutant.before),
        "after": _decode_part(mutant.after),
    }


def _decode_part(document: bytes | None) -> Any:
    """Return a part of a document; a long one as the beginning of its text."""
    if document is None:
        return None
    if len(document) <= _MAX_PART_CHARACTERS:
        return json.loads(document)
    return document.decode(errors="replace")[:_MAX_PART_CHARACTERS] + "…"


def _describe_unmet(test: TestCase, verdict: CaseVerdict) -> dict[str, Any]:
    """Return a failed test with its observed output and findings."""
    told = {
        "id": test.test_id,
        "category": test.category,
        "input": _shorten(test.input),
        "body": test.body,
        "expected_output": None if test.expected_output is None else _shorten(test.expected_output),
        "status": verdict.examined.status.value,
        "observed": verdict.examined.observed[:_MAX_OBSERVED_CHARACTERS],
        "findings": [_shorten(finding.message) for finding in verdict.findings[:_MAX_FINDINGS]],
    }
    return {name: value for name, value in told.items() if value}


def _existing_tests(state: GenerationState, tests: Sequence[TestCase]) -> dict[str, Any]:
    """Return the newest tests, one line each; baseline tests are only counted."""
    told: dict[str, Any] = {
        "existing_tests": [_test_line(state, test) for test in tests[-_MAX_LISTED_TESTS:]],
        "existing_count": len(tests),
    }
    combinatorial = len(state.tests) - len(state.model_tests)
    return told | {"combinatorial_count": combinatorial} if combinatorial else told


def _dropped_tests(state: GenerationState) -> dict[str, Any]:
    """Return the newest dropped tests, without those whose input equals that of a listed test.

    Baseline tests are not listed, so tests that equal one of them are included: otherwise they are repeated.
    """
    listed = {test.test_id for test in state.model_tests}
    tests = [
        event.test
        for event in state.dropped
        if not event.test.is_combinatorial
        and not (event.level is DuplicateLevel.CANONICAL and event.of in listed)
    ]
    return {"dropped": [_test_line(state, test) for test in tests[-MAX_LISTED:]]} if tests else {}


def _test_line(state: GenerationState, test: TestCase) -> str:
    verdict = state.verdicts.get(test.test_id)
    status = "" if verdict is None else f" ({verdict.examined.status.value})"
    expected = "" if test.expected_output is None else f" -> {test.expected_output}"
    return _shorten(f"[{test.test_id}]{status} {test.category}: {test.input}{expected}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_CHARACTERS else line[: _MAX_LINE_CHARACTERS - 1] + "…"


def _quality_figures(quality: SuiteQuality) -> dict[str, Any]:
    told: dict[str, Any] = {
        "coverage": {coverage.kind: [coverage.covered, coverage.reachable] for coverage in quality.coverage},
        "counting_tests": quality.counting_tests,
    }
    if quality.mutation is not None:
        told |= {"killed": quality.mutation.killed, "survived": quality.mutation.survived}
    return told


def _response_schema(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}

REFLECTION_SCHEMA = ResponseSchema(
    "reflection",
    _response_schema(text=_TEXT, nothing_missing={"type": "boolean"}, recommendations=_TEXTS),
)
ASSESSMENT_SCHEMA = ResponseSchema(
    "assessment",
    _response_schema(
        text=_TEXT,
        score={"type": "integer", "minimum": 1, "maximum": 10},
        gaps=_TEXTS,
        recommendations=_TEXTS,
    ),
)
