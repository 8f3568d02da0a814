"""Reports of a run: JUnit, SARIF and Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from peripety.core.mutation_testing import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.errors import Finding
from peripety.testgen.events import GenerationStats
from peripety.testgen.export.suite import TestFormat, render
from peripety.testgen.types import SuiteQuality, TestCase, TestStatus
from support.testgen.suites import command_case, command_suite, outcome, policy_case, policy_suite, suite_of

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.testgen.export.suite import ExportedSuite


NOT_MET = (Finding("EXPECTATION_NOT_MET", "/expected", "the policy says deny."),)


def report(suite: ExportedSuite) -> ET.Element:
    return ET.fromstring(b"".join(render(suite, TestFormat.JUNIT).parts))  # noqa: S314 - it is our own


def test_every_test_stands_in_its_category_with_what_became_of_it() -> None:
    suite = policy_suite(
        policy_case("good", "allow"),
        policy_case("bad", "allow", 7, source="task: It is allowed."),
        policy_case("shaky", "allow"),
        policy_case("never", "allow"),
        TestCase("other", "denied", "in words alone"),
        outcomes={
            "good": outcome(observed="allow by small"),
            "bad": outcome(TestStatus.FAILED, counts=False, findings=NOT_MET, observed="deny by default"),
            "shaky": outcome(TestStatus.UNSTABLE, counts=False),
            "never": outcome(TestStatus.NOT_EXECUTABLE, counts=False),
        },
    )
    root = report(suite)
    counts = {"tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    assert {name: root.get(name) for name in counts} == counts
    first, second = root.findall("testsuite")
    assert (first.get("name"), first.get("tests"), second.get("name"), second.get("skipped")) == (
        *("allowed", "4"),
        *("denied", "1"),
    )
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert cases["good"].findtext("system-out") == "allow by small"
    failure = cases["bad"].find("failure")
    assert failure is not None
    assert failure.get("message") == "the policy says deny."
    lines = ["EXPECTATION_NOT_MET /expected: the policy says deny.", "source: task: It is allowed."]
    assert failure.text == "\n".join([*lines, "deny by default"])
    assert cases["shaky"].find("failure") is not None
    assert cases["never"].find("error") is not None
    skipped = cases["other"].find("skipped")
    assert skipped is not None
    assert "in words alone" in skipped.get("message", "")
    assert "time" not in cases["good"].keys()  # noqa: SIM118 - an element has no membership


def test_any_text_leaves_the_report_well_formed() -> None:
    hostile = "\0\x01\x1b\ud800\ufffe]]> <&\"' \N{GRINNING FACE}\r\n\t"
    suite = suite_of(
        [TestCase(hostile, hostile, hostile), TestCase("t", "existence", "")],
        outcomes={
            "t": outcome(TestStatus.FAILED, observed=hostile, findings=(Finding("X", hostile, hostile),)),
        },
    )
    root = report(suite)
    names = [case.get("name") for case in root.iter("testcase")]
    assert names[1] is not None
    assert names[1].endswith("]]> <&\"' \N{GRINNING FACE}\r\n\t")
    assert root.get("tests") == "2"


def contradiction(source: str, **body: Any) -> ExportedSuite:
    """A command with a test that fails, one that passes, and one without a source that fails."""
    given = {"arguments": [], "stdin": "", "exit_code": 0, **body}
    tests = [
        TestCase("bad", "correctness", "grade(50)", "'high'", body=given, source=source),
        TestCase("good", "correctness", "grade(3)", "'low'", body=given, source=source),
        TestCase("guess", "correctness", "grade(4)", "'low'", body=given),
    ]
    failed = outcome(TestStatus.FAILED, counts=False, observed="'low'")
    return suite_of(tests, outcomes={"bad": failed, "good": outcome(), "guess": failed})


@pytest.mark.parametrize(
    ("source", "body", "place"),
    [
        (
            "grading.py, line 4: >>> grade(50) 'high'",
            {},
            {"artifactLocation": {"uri": "grading.py"}, "region": {"startLine": 4}},
        ),
        ("lib/a.py: It is high.", {}, {"artifactLocation": {"uri": "lib/a.py"}}),
        (
            "law: decode reverses encode",
            {"call": {"module": "a.b", "code": "decode(encode(1)) == 1"}},
            {"artifactLocation": {"uri": "a/b.py"}},
        ),
        ("task: The limit itself is allowed.", {}, None),
    ],
)
def test_a_finding_has_its_citation_and_its_place(
    source: str,
    body: dict[str, Any],
    place: dict[str, Any] | None,
) -> None:
    document = json.loads(b"".join(render(contradiction(source, **body), TestFormat.SARIF).parts))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert source in result["message"]["text"]
    assert "Observed: 'low'" in result["message"]["text"]
    assert result["partialFingerprints"]
    assert [one["physicalLocation"] for one in result.get("locations", ())] == ([place] if place else [])


def test_a_summary_has_the_findings_before_the_measurements() -> None:
    suite = contradiction("grading.py, line 4: >>> grade(50) 'high'")
    text = b"".join(render(suite, TestFormat.MARKDOWN).parts).decode()
    assert text.index("## Findings (1)") < text.index("## Measurements") < text.index("## Tests")
    assert "- observed: `'low'`" in text
    assert "| tests | 3 (2 failed, 1 passed) |" in text
    assert "| quality | not measured |" in text
    assert text.count("describes what the subject does today") == 1


def test_nothing_to_measure_is_not_a_share(tmp_path: Path) -> None:
    survivor = Mutant("m1", "swap", "/a.py/3", b'"a | b"', None, MutantOutcome.SURVIVED)
    half = MutationScore(1, 1, 0, (survivor,))
    for score, shown in ((MutationScore(0, 0, 4), "not measured"), (half, "1 of 2 (50.0%)")):
        quality = SuiteQuality((Coverage("line", 0, 0),), score, 0)
        suite = command_suite(tmp_path, command_case("a", [], "b"), stats=GenerationStats(quality=quality))
        text = b"".join(render(suite, TestFormat.MARKDOWN).parts).decode()
        assert "| line coverage | not measured |" in text
        assert f"| mutants killed | {shown} |" in text
    assert '- /a.py/3 swap: `"a \\| b"` → `nothing`' in text
