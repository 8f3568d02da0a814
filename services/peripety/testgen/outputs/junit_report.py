"""JUnit report of a run, with one suite per category.

Failed and unstable tests are failures; tests that are not executable are errors; tests without results are
skipped. Durations are not included, because they are not measured.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from peripety.testgen.model import TestStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.model import TestCase
    from peripety.testgen.outputs.suite import Outcome, Suite

__all__ = ["write"]

# Characters that XML 1.0 cannot represent, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILURES = frozenset({TestStatus.FAILED, TestStatus.UNSTABLE})


def write(suite: Suite) -> bytes:
    """Return the report."""
    categories = dict.fromkeys(
        [*(category.name for category in suite.order.categories), *(test.category for test in suite.tests)]
    )
    name = suite.order.task_id or suite.run_id
    root = ET.Element("testsuites", {"name": _text(name), **_counts(suite.tests, suite)})
    for category in categories:
        tests = [test for test in suite.tests if test.category == category]
        if not tests:
            continue
        place = ET.SubElement(root, "testsuite", {"name": _text(category), **_counts(tests, suite)})
        for test in tests:
            _write_case(place, test, suite.outcomes.get(test.test_id))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _counts(tests: Sequence[TestCase], suite: Suite) -> dict[str, str]:
    found = [suite.outcomes.get(test.test_id) for test in tests]
    statuses = [None if one is None else one.status for one in found]
    return {
        "tests": str(len(tests)),
        "failures": str(sum(status in _FAILURES for status in statuses)),
        "errors": str(statuses.count(TestStatus.NOT_EXECUTABLE)),
        "skipped": str(statuses.count(None)),
    }


def _write_case(place: ET.Element, test: TestCase, outcome: Outcome | None) -> None:
    case = ET.SubElement(place, "testcase", {"classname": _text(test.category), "name": _text(test.test_id)})
    if outcome is None:
        ET.SubElement(case, "skipped", {"message": _text(f"not run: {test.input}")})
        return
    findings = (f"{one.code} {one.path or '/'}: {one.message}" for one in outcome.findings)
    told = _text("\n".join(filter(None, (*findings, outcome.observed))))
    if outcome.status is TestStatus.PASSED:
        if told:
            ET.SubElement(case, "system-out").text = told
        return
    kind = "failure" if outcome.status in _FAILURES else "error"
    first = outcome.findings[0].message if outcome.findings else outcome.status.value
    problem = ET.SubElement(case, kind, {"message": _text(first), "type": outcome.status.value})
    problem.text = told


def _text(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
