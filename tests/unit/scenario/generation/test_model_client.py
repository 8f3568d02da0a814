"""Feedback to a model: only existing parts, the worst findings first, and parts by known names."""

from __future__ import annotations

from peripety.errors import Finding, Severity
from peripety.scenario.generation.model_client import Feedback
from peripety.scenario.types import NumberEdit
from support.engine.specs import action, spec

DOCUMENT = spec(actions=[action("one"), action("two")])


def test_a_finding_is_told_with_the_part_by_its_id_where_its_place_does_not_say_it() -> None:
    found = (
        Finding("UNKNOWN_PATH", "/actions/1/effects/0/path", "a"),
        Finding("OUT_OF_RANGE", "/horizon", "b"),
        Finding("NEVER_HEARD_OF", "", "c", Severity.WARNING),
    )
    message = Feedback(found, DOCUMENT).render()
    assert message["findings"] == [
        {"code": "UNKNOWN_PATH", "path": "/actions/1/effects/0/path", "message": "a", "part": "/actions/two"},
        {"code": "OUT_OF_RANGE", "path": "/horizon", "message": "b"},
        {"code": "NEVER_HEARD_OF", "path": "", "message": "c", "severity": "warning"},
    ]
    assert message["fixes"] == {finding.code: finding.remedy for finding in found[:2]}
    assert message.keys() == {"findings", "fixes"}


def test_what_became_of_the_answer_is_told() -> None:
    moved = (NumberEdit("/horizon", 3, 4),)
    message = Feedback((), DOCUMENT, ("/actions/one",), ("",), moved).render()
    assert message == {
        "left_out": ["/actions/one"],
        "undone": [""],
        "moved": [{"path": "/horizon", "before": 3, "after": 4}],
    }


def test_a_long_list_is_cut_and_says_so() -> None:
    message = Feedback(tuple(Finding("A", "", str(number)) for number in range(50)), DOCUMENT).render()
    assert [finding["message"] for finding in message["findings"]] == [str(number) for number in range(20)]
    assert message["more_findings"] == 30


def test_of_many_parts_that_stay_as_they_were_not_all_are_told() -> None:
    paths = tuple(f"/actions/a{number}" for number in range(5_000))
    message = Feedback((), DOCUMENT, ignored=paths, rolled_back=paths).render()
    assert message == {"left_out": list(paths[:20]), "undone": list(paths[:20])}
