"""Reports of a run for continuous integration: JUnit, SARIF and Markdown.

In the JUnit report, each category is a suite. Failed and unstable tests are failures; tests that are not
executable are errors; tests without results are skipped. Durations are not included, because they are not
measured.

The SARIF report (OASIS, version 2.1.0) has one result for each finding: a test with a source that fails. Its
place is the one of the source, if the source names a file, and else the module of the function.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from peripety.testgen.export.existing_module import members_of
from peripety.testgen.export.literals import to_one_line
from peripety.testgen.types import CHANGED_LINES_SCOPE, TestStatus
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.testgen.export.suite import ExportedOutcome, ExportedSuite
    from peripety.testgen.types import SuiteQuality, TestCase


# Characters that XML 1.0 cannot represent, not even escaped.
_ILLEGAL_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FAILURE_STATUSES = frozenset({TestStatus.FAILED, TestStatus.UNSTABLE})


def write_junit(suite: ExportedSuite) -> bytes:
    """Return the report."""
    categories = dict.fromkeys(
        [*(category.name for category in suite.order.categories), *(test.category for test in suite.tests)],
    )
    name = suite.order.task_id or suite.run_id
    root = ET.Element("testsuites", {"name": _xml_text(name), **_count_attributes(suite.tests, suite)})
    for category in categories:
        tests = [test for test in suite.tests if test.category == category]
        if not tests:
            continue
        place = ET.SubElement(
            root,
            "testsuite",
            {"name": _xml_text(category), **_count_attributes(tests, suite)},
        )
        for test in tests:
            _write_case(place, test, suite.outcomes.get(test.test_id))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _count_attributes(tests: Sequence[TestCase], suite: ExportedSuite) -> dict[str, str]:
    found = [suite.outcomes.get(test.test_id) for test in tests]
    statuses = [None if one is None else one.status for one in found]
    return {
        "tests": str(len(tests)),
        "failures": str(sum(status in _FAILURE_STATUSES for status in statuses)),
        "errors": str(statuses.count(TestStatus.NOT_EXECUTABLE)),
        "skipped": str(statuses.count(None)),
    }


def _write_case(place: ET.Element, test: TestCase, outcome: ExportedOutcome | None) -> None:
    case = ET.SubElement(
        place,
        "testcase",
        {"classname": _xml_text(test.category), "name": _xml_text(test.test_id)},
    )
    if outcome is None:
        ET.SubElement(case, "skipped", {"message": _xml_text(f"not run: {test.input}")})
        return
    findings = (f"{one.code} {one.path or '/'}: {one.message}" for one in outcome.findings)
    source = f"source: {test.source}" if test.source else ""
    told = _xml_text("\n".join(filter(None, (*findings, source, outcome.observed))))
    if outcome.status is TestStatus.PASSED:
        if told:
            ET.SubElement(case, "system-out").text = told
        return
    kind = "failure" if outcome.status in _FAILURE_STATUSES else "error"
    first = outcome.findings[0].message if outcome.findings else outcome.status.value
    problem = ET.SubElement(case, kind, {"message": _xml_text(first), "type": outcome.status.value})
    problem.text = told


def _xml_text(text: str) -> str:
    return _ILLEGAL_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def find_contradictions(suite: ExportedSuite) -> list[tuple[TestCase, ExportedOutcome]]:
    """Return the tests with a source that fail, with their results."""
    found = ((test, suite.outcomes.get(test.test_id)) for test in suite.tests if test.source)
    return [
        (test, outcome)
        for test, outcome in found
        if outcome is not None and outcome.status is TestStatus.FAILED
    ]


_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE = "CONTRADICTS_SOURCE"
_SOURCE_PATTERN = re.compile(r"(?P<file>[^:\n]*[^:\s]), line (?P<line>\d+): .*", re.DOTALL)
_QUOTE_PATTERN = re.compile(r"(?P<file>[\w./-]+\.\w+): .*", re.DOTALL)


def write_sarif(suite: ExportedSuite) -> bytes:
    """Return the report."""
    rule = {
        "id": _RULE,
        "shortDescription": {"text": "The subject does not do what a source requires."},
        "fullDescription": {
            "text": "A sentence of the task or of the documentation, a type or a law requires another result."
            " Either the subject is wrong, or the source.",
        },
        "defaultConfiguration": {"level": "error"},
    }
    driver = {"name": "peripety", "version": __version__, "rules": [rule]}
    results = [_sarif_result(test, outcome) for test, outcome in find_contradictions(suite)]
    document = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"


def _sarif_result(test: TestCase, outcome: ExportedOutcome) -> dict[str, Any]:
    expected = "" if test.expected_output is None else f" Expected: {test.expected_output}"
    fingerprint = sha256(json.dumps([members_of(test), test.source], sort_keys=True).encode()).hexdigest()
    result: dict[str, Any] = {
        "ruleId": _RULE,
        "ruleIndex": 0,
        "level": "error",
        "message": {
            "text": f"The subject contradicts its source. {test.source}\nInput: {test.input}{expected}\n"
            f"Observed: {outcome.observed}".rstrip(),
        },
        "partialFingerprints": {"peripetyTest/v1": fingerprint},
        "properties": {"test": test.test_id, "category": test.category, "source": test.source},
    }
    place = _place_of(test)
    if place is not None:
        result["locations"] = [{"physicalLocation": place}]
    return result


def _place_of(test: TestCase) -> dict[str, Any] | None:
    """Return the place of a source; None if it is in no file."""
    found = _SOURCE_PATTERN.fullmatch(test.source)
    if found is not None:
        return {
            "artifactLocation": {"uri": found["file"]},
            "region": {"startLine": int(found["line"])},
        }
    quoted = _QUOTE_PATTERN.fullmatch(test.source)
    if quoted is not None:
        return {"artifactLocation": {"uri": quoted["file"]}}
    call = (test.body or {}).get("call")
    if call:
        return {"artifactLocation": {"uri": f"{call['module'].replace('.', '/')}.py"}}
    return None


_MAX_LISTED = 50
_MAX_SHOWN = 300
_MARKS = {
    TestStatus.PASSED: "passed",
    TestStatus.FAILED: "**failed**",
    TestStatus.UNSTABLE: "unstable",
    TestStatus.NOT_EXECUTABLE: "not executable",
}


def write_markdown(suite: ExportedSuite) -> bytes:
    """Return the summary."""
    lines = [f"# Generated tests: {_escape(suite.order.task_id or suite.run_id)}", ""]
    lines += [_escape(suite.order.description, _MAX_SHOWN), ""]
    found = find_contradictions(suite)
    lines += [*_finding_lines(found), *_measurement_lines(suite), *_survivor_lines(suite.stats.quality)]
    lines += [
        "## Tests",
        "",
        "| test | category | result | input | source |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [_test_row(test, suite.outcomes.get(test.test_id)) for test in suite.tests]
    return ("\n".join(lines) + "\n").encode(errors="backslashreplace")


def _finding_lines(found: Sequence[tuple[TestCase, ExportedOutcome]]) -> Iterator[str]:
    if not found:
        yield from ("No test contradicts its source.", "")
        return
    yield from (f"## Findings ({len(found)})", "", "The subject does not do what these sources require:", "")
    for test, outcome in found:
        yield f"- `{_code(test.test_id)}`: {_escape(test.source)}"
        yield f"  - input: `{_code(test.input)}`"
        if test.expected_output is not None:
            yield f"  - expected: `{_code(test.expected_output)}`"
        yield f"  - observed: `{_code(outcome.observed)}`"
    yield ""


def _measurement_lines(suite: ExportedSuite) -> Iterator[str]:
    statuses = Counter(
        "not run" if outcome is None else outcome.status.value.replace("_", " ")
        for outcome in (suite.outcomes.get(test.test_id) for test in suite.tests)
    )
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    yield from ("## Measurements", "", "| figure | value |", "| --- | --- |")
    yield f"| tests | {len(suite.tests)}{f' ({told})' if told else ''} |"
    quality = suite.stats.quality
    if quality is None:
        yield from ("| quality | not measured |", "")
        return
    yield f"| tests that count | {quality.counting_tests} |"
    scope = ""
    if quality.changed_since:
        scope = CHANGED_LINES_SCOPE
        yield f"| measured | the lines changed since {_escape(quality.changed_since)} |"
    for one in quality.coverage:
        yield f"| {one.kind.replace('_', '/')} coverage{scope} | {_share(one.covered, one.reachable)} |"
    if quality.unmeasured_lines:
        parts = (f"{_escape(name)} {count}" for name, count in sorted(quality.unmeasured_lines.items()))
        yield f"| lines not measured | {', '.join(parts)} |"
    mutation = quality.mutation
    killed = (
        "not measured" if mutation is None else _share(mutation.killed, mutation.killed + mutation.survived)
    )
    yield from (f"| mutants killed{scope} | {killed} |", "")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "not measured"


def _survivor_lines(quality: SuiteQuality | None) -> Iterator[str]:
    survivors = () if quality is None or quality.mutation is None else quality.mutation.survivors
    if not survivors:
        return
    yield from ("## Surviving mutants", "", "No test fails on these changes:", "")
    for mutant in survivors[:_MAX_LISTED]:
        before, after = (
            "nothing" if one is None else one.decode(errors="replace")
            for one in (mutant.before, mutant.after)
        )
        yield f"- {_escape(mutant.path)} {mutant.operator}: `{_code(before)}` → `{_code(after)}`"
    if len(survivors) > _MAX_LISTED:
        yield f"- and {len(survivors) - _MAX_LISTED} more"
    yield ""


def _part_text(part: bytes | None) -> str:
    return "nothing" if part is None else part.decode(errors="replace")


def _test_row(test: TestCase, outcome: ExportedOutcome | None) -> str:
    result = "not run" if outcome is None else _MARKS[outcome.status]
    if outcome is not None and outcome.status is TestStatus.UNSTABLE:
        result += "".join(f": {_escape(finding.message)}" for finding in outcome.findings[:1])
    source = _escape(test.source) if test.source else "none; it describes what the subject does today"
    parts = (f"`{_code(test.test_id)}`", _escape(test.category), result, f"`{_code(test.input)}`", source)
    return f"| {' | '.join(parts)} |"


def _escape(text: str, most: int = _MAX_SHOWN) -> str:
    """Return a text on one line that Markdown shows as it is."""
    line = _shorten(text, most)
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", line)


def _code(text: str) -> str:
    """Return a text on one line for a code span in a table."""
    return _shorten(text, _MAX_SHOWN).replace("`", "'").replace("|", "\\|") or " "


def _shorten(text: str, most: int) -> str:
    line = to_one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"
