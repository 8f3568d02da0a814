"""Detection of duplicate tests without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.testgen.measuring.inputs import are_near, canonical_text, folded, input_text
from peripety.testgen.model import DuplicateLevel
from peripety.testgen.subjects.subject import SubjectKind

if TYPE_CHECKING:
    from peripety.testgen.model import TestCase
    from peripety.testgen.subjects.subject import Subject

__all__ = ["Duplicates"]


class Duplicates:
    """The existing tests; of two duplicates, the later one is dropped.

    Executable tests are duplicates if their inputs and expectations are equal. Another expectation of the
    same input may test another aspect, correct the first one or contradict it; only running them shows which.
    `MeasuredSuite` detects those without additional value. Text tests are duplicates if their inputs are
    equal.

    Args:
        subject: the subject; None for text only.
    """

    def __init__(self, subject: Subject | None) -> None:
        self._subject = subject
        self._by_key: dict[tuple[str, ...], str] = {}
        self._texts: list[tuple[TestCase, str]] = []

    def find(self, test: TestCase) -> tuple[str, DuplicateLevel] | None:
        """Return the id of the duplicated test, and the criterion; None for a new test."""
        if (of := self._by_key.get(self._key(test))) is not None:
            return of, DuplicateLevel.CANONICAL
        if self._is_run(test):
            return None
        text, expected = folded(test.input), _expected(test)
        for other, other_text in self._texts:
            if expected == _expected(other) and are_near(other_text, text):
                return other.test_id, DuplicateLevel.NEAR
        return None

    def add(self, test: TestCase) -> None:
        """Add a test that is not a duplicate."""
        self._by_key.setdefault(self._key(test), test.test_id)
        if not self._is_run(test):
            self._texts.append((test, folded(test.input)))

    def _is_run(self, test: TestCase) -> bool:
        return self._subject is not None and test.body is not None

    def _key(self, test: TestCase) -> tuple[str, ...]:
        given = input_text(self._subject, test)
        if self._subject is None or test.body is None:
            return ("text", given)
        # Commands have their expected output outside of the body; for other subjects it is display text.
        written = _expected(test) if self._subject.kind is SubjectKind.COMMAND else ""
        return ("body", given, canonical_text(_without_nulls(test.body)), written)


def _expected(test: TestCase) -> str:
    return "" if test.expected_output is None else folded(test.expected_output)


def _without_nulls(value: Any) -> Any:
    """Return a body without null members."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [*map(_without_nulls, value)] if isinstance(value, list) else value
