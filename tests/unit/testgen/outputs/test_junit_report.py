from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from peripety.errors import Finding
from peripety.testgen.export.suite import TestFormat, render
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.suites import outcome, policy_case, policy_suite, suite_of

if TYPE_CHECKING:
    from peripety.testgen.export.suite import ExportedSuite


NOT_MET = (Finding("EXPECTATION_NOT_MET", "/expected", "the policy says deny."),)


def report(suite: ExportedSuite) -> ET.Element:
    return ET.fromstring(b"".join(render(suite, TestFormat.JUNIT)))  # noqa: S314 - it is our own


def test_every_test_stands_in_its_category_with_what_became_of_it() -> None:
    suite = policy_suite(
        policy_case("good", "allow"),
        policy_case("bad", "allow", 7),
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
    assert failure.text == "EXPECTATION_NOT_MET /expected: the policy says deny.\ndeny by default"
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
