"""Tests, verdicts and quality from and to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.policies.messages import parts, reports
from peripety.requests import require
from peripety.testgen.messages.bodies import body_from_proto, body_to_proto
from peripety.testgen.model import TestCase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.model import Quality, Verdict

__all__ = ["MAX_TESTS", "case_to_proto", "cases_from_proto", "quality_to_proto", "verdict_to_proto"]

MAX_TESTS = 1_000

_MAX_NAME_BYTES = 256
_MAX_TEXT_BYTES = 100 * 1024


def case_to_proto(test: TestCase, verdict: Verdict | None = None) -> pb.GeneratedTest:
    """Convert a test with its verdict."""
    written = pb.GeneratedTest(
        test_id=test.test_id,
        category=test.category,
        input=test.input,
        expected_output=test.expected_output,
        reasoning=test.reasoning,
        confidence=test.confidence,
        round=test.round,
        combinatorial=test.is_combinatorial,
        verdict=None if verdict is None else verdict_to_proto(verdict),
    )
    setattr(written, "global", test.is_global)  # `global` is a Python keyword
    body_to_proto(test, written)
    return written


def cases_from_proto(tests: Sequence[pb.GeneratedTest], field: str = ".tests") -> tuple[TestCase, ...]:
    """Parse tests, without their verdicts.

    Raises:
        InvalidArgumentError: there are too many, or a field is invalid.
    """
    require(len(tests) <= MAX_TESTS, field, f"has more than {MAX_TESTS} tests; send fewer")
    read = tuple(_from_proto(test, f"{field}[{at}]") for at, test in enumerate(tests))
    first: dict[str, int] = {}
    for at, test in enumerate(read):
        before = first.setdefault(test.test_id, at)
        reason = f"equals that of {field}[{before}]; choose a unique one"
        require(before == at, f"{field}[{at}].test_id", reason)
    return read


def verdict_to_proto(verdict: Verdict) -> pb.TestVerdict:
    """Convert a verdict."""
    return pb.TestVerdict(
        status=pb.TestStatus.Value(f"TEST_STATUS_{verdict.examined.status.name}"),
        runs=verdict.examined.runs,
        counts=verdict.counts,
        findings=parts.findings(verdict.findings),
        new_kills=verdict.new_kills,
        new_coverage=verdict.new_coverage,
        observed=verdict.examined.observed,
    )


def quality_to_proto(quality: Quality) -> pb.Quality:
    """Convert a quality measurement."""
    mutation = quality.mutation
    return pb.Quality(
        coverage=reports.coverage(quality.coverage),
        mutation=None if mutation is None else reports.mutation_score(mutation),
        counting_tests=quality.counting_tests,
    )


def _from_proto(test: pb.GeneratedTest, field: str) -> TestCase:
    for name, most in (
        ("test_id", _MAX_NAME_BYTES),
        ("category", _MAX_NAME_BYTES),
        ("input", _MAX_TEXT_BYTES),
        ("expected_output", _MAX_TEXT_BYTES),
        ("reasoning", _MAX_TEXT_BYTES),
    ):
        require(len(getattr(test, name).encode()) <= most, f"{field}.{name}", f"has more than {most} bytes")
    require(test.test_id, f"{field}.test_id", "is required")
    require(0 <= test.confidence <= 1, f"{field}.confidence", "must be from 0 to 1")
    return TestCase(
        test_id=test.test_id,
        category=test.category,
        input=test.input,
        expected_output=test.expected_output if test.HasField("expected_output") else None,
        reasoning=test.reasoning,
        confidence=test.confidence,
        body=body_from_proto(test, field),
        round=test.round,
        is_global=bool(getattr(test, "global")),
        is_combinatorial=test.combinatorial,
    )
