from __future__ import annotations

import json

import pytest

from peripety.core.mutation_testing import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.errors import Finding, InvalidArgumentError, Severity
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.testgen.events import GenerationStats, GenerationStop
from peripety.testgen.export.suite import (
    MAX_PART_BYTES,
    SUITE_SCHEMA,
    ExportedCommand,
    ExportedOutcome,
    ExportedSubject,
    ExportedSuite,
    TestFormat,
    read_json,
    render,
    write_json,
)
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import (
    CaseVerdict,
    Category,
    EvaluatedTest,
    FilePreview,
    SuiteQuality,
    TaskContext,
    TaskEnvironment,
    TestCase,
    TestGenConfig,
    TestGenOrder,
    TestStatus,
)
from support.testgen.suites import policy_case, policy_suite, suite_of


def whole() -> ExportedSuite:
    """A run in which everything is set."""
    order = TestGenOrder(
        description="any text\nof \N{GRINNING FACE}",
        task_id="task",
        environment=TaskEnvironment(
            "linux/x86_64",
            ("python 3.13",),
            ("awk",),
            ("sed",),
            (FilePreview("a", 1, "x"),),
        ),
        context=TaskContext.CUSTOM,
        categories=(Category("first", "one of them"),),
        config=TestGenConfig(max_total_tokens=1_000),
        model="provider/model",
        budget=Budget(max_calls=7),
    )
    survivor = Mutant("m1", "swap", "/rules/0", b'"a"', None, MutantOutcome.SURVIVED)
    quality = SuiteQuality(
        (Coverage("rule", 1, 2, ("/rules/1",), ("/rules/2",)),),
        MutationScore(3, 1, 2, (survivor,)),
        1,
    )
    finding = Finding("CONTRADICTION", "/expected", "both cannot be right.", Severity.WARNING)
    verdict = CaseVerdict(
        EvaluatedTest(TestStatus.PASSED, 5, "seen", kills=frozenset({"m2", "m3"})),
        True,
        (finding,),
        ("m2",),
        ("rule:/0",),
    )
    return ExportedSuite(
        "run_1",
        order,
        ExportedSubject(
            SubjectKind.COMMAND,
            command=ExportedCommand(("python3", "a.py"), "a/b", ("NAME",), 2.5),
        ),
        (
            TestCase(
                "t1",
                "first",
                "in",
                "out",
                "why",
                0.25,
                {"exit_code": None, "deep": [1, {"a": 2.5}]},
                2,
                True,
            ),
        ),
        {"t1": ExportedOutcome.from_verdict(verdict)},
        GenerationStats(
            1,
            2,
            {"first": 2},
            0,
            7,
            UsageTotal(3, Usage(10, 20), 10**9),
            1.5,
            ("unsure.",),
            GenerationStop.EXPECTED_GAIN,
            quality,
            4,
        ),
    )


@pytest.mark.parametrize("suite", [whole(), suite_of([]), policy_suite(policy_case("a", "allow"))])
def test_what_was_written_is_read_as_it_was(suite: ExportedSuite) -> None:
    assert read_json(write_json(suite)) == suite


def test_the_document_says_what_it_is_and_what_each_part_is() -> None:
    document = json.loads(b"".join(render(whole(), TestFormat.JSON).parts))
    assert document["schema"] == SUITE_SCHEMA
    assert document["order"]["config"]["max_total_tokens"] == 1_000
    assert document["tests"][0]["body"] == {"exit_code": None, "deep": [1, {"a": 2.5}]}
    assert document["outcomes"]["t1"]["status"] == "passed"
    assert document["outcomes"]["t1"]["new_kills"] == ["m2"]
    assert document["stats"]["stopped_by"] == "expected_gain"
    assert document["tested"]["command"]["environment"] == ["NAME"]


def test_text_that_has_no_place_in_utf_8_is_escaped() -> None:
    suite = suite_of([TestCase("t", "existence", "half \ud800")])
    assert json.loads(write_json(suite).decode())["tests"][0]["input"] == "half \ud800"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"", "Expecting value"),
        (b"[]", "schema"),
        (b'{"schema": "peripety.testgen.suite/2"}', "schema"),
        (b'{"schema": "peripety.testgen.suite/1"}', "run_id"),
        (b"[" * 100_000, "recursion"),
        (b"\xff", "utf-8"),
    ],
)
def test_what_is_no_such_document_is_refused_with_the_reason(document: bytes, told: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        read_json(document)
    assert told in refused.value.message
    assert refused.value.code == "FILE_INVALID"


def test_parts_of_a_file_are_no_larger_than_they_may_be() -> None:
    tests = [TestCase(f"t{number}", "existence", "\N{GRINNING FACE}" * 1_000) for number in range(600)]
    parts = render(suite_of(tests), TestFormat.JSON).parts
    assert len(parts) > 2
    assert max(map(len, parts)) == MAX_PART_BYTES
    assert len(json.loads(b"".join(parts))["tests"]) == 600
