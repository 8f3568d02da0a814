"""Export of a run: a pytest module, a JSON document or a JUnit report."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from peripety.testgen.outputs import json_document, junit_report, pytest_module
from peripety.testgen.outputs.suite import Command, Outcome, Source, Suite

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_PART_BYTES", "Command", "Outcome", "Source", "Suite", "TestFormat", "render"]

MAX_PART_BYTES = 1024 * 1024


class TestFormat(Enum):
    """The format of an exported file."""

    __test__ = False

    PYTEST = "pytest"
    """A self-contained module."""
    JSON = "json"
    """All data as one document."""
    JUNIT = "junit"
    """The latest results of the tests."""


_WRITERS = {
    TestFormat.PYTEST: pytest_module.write,
    TestFormat.JSON: json_document.write,
    TestFormat.JUNIT: junit_report.write,
}


def render(suite: Suite, to: TestFormat, *, counting_only: bool = False) -> Iterator[bytes]:
    """Render the tests of a run as a file; equal suites give equal bytes.

    Args:
        suite: the run and its tests.
        to: the format.
        counting_only: True to leave out tests that do not count.

    Returns:
        The parts of the file, in order, each of at most `MAX_PART_BYTES`.
    """
    if counting_only:
        suite = replace(suite, tests=tuple(test for test in suite.tests if suite.counts(test)))
    content = _WRITERS[to](suite)
    return (content[at : at + MAX_PART_BYTES] for at in range(0, len(content), MAX_PART_BYTES))
