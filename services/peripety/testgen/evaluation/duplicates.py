"""Duplicate tests, found without running them, and contradictions between tests with the same input."""

from __future__ import annotations

import json
import re
import unicodedata
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from peripety.engine import canonicalize
from peripety.engine.schema_validation import parse_pointer
from peripety.errors import InvalidArgumentError
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import DuplicateLevel, TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.testgen.subjects.subject import Subject
    from peripety.testgen.types import EvaluatedTest, TestCase


_ABSENT = object()


def contradict(
    one: TestCase,
    examined: EvaluatedTest,
    other: TestCase,
    other_examined: EvaluatedTest,
) -> bool:
    """Return True if no subject can meet the expectations of two tests with the same input.

    If one test passes, a wrong expectation of the other counts if the first has an expectation in the same
    place. If neither passes, only exact differences count: two booleans, or two exact results.

    Args:
        one: a test.
        examined: its result.
        other: another test with the same input.
        other_examined: its result.
    """
    statuses = {examined.status, other_examined.status}
    if not statuses <= {TestStatus.PASSED, TestStatus.FAILED} or statuses == {TestStatus.PASSED}:
        return False
    if len(statuses) == 1:
        return any(_is_exact_difference(path, *values) for path, *values in _iter_differences(one, other))
    wrong, found, right = (
        (one, examined, other) if examined.status is TestStatus.FAILED else (other, other_examined, one)
    )
    places = [finding.path for finding in found.findings if _part_at(wrong.body, finding.path) is not _ABSENT]
    if places:
        return any(_part_at(right.body, place) is not _ABSENT for place in places)
    return any(True for _ in _iter_differences(one, other))


def _iter_differences(one: TestCase, other: TestCase) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield the places where both tests have expectations, and different ones."""
    if one.body == other.body and one.expected_output is not None and other.expected_output is not None:
        yield ("expected_output",), one.expected_output, other.expected_output
    yield from _iter_differing_parts(one.body, other.body, ())


def _iter_differing_parts(
    one: Any,
    other: Any,
    path: tuple[str | int, ...],
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if one is None or other is None or one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict) and (shared := one.keys() & other.keys()):
        for key in sorted(shared):
            yield from _iter_differing_parts(one[key], other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (part, counterpart) in enumerate(zip(one, other, strict=True)):
            yield from _iter_differing_parts(part, counterpart, (*path, index))
    else:
        yield path, one, other


def _is_exact_difference(path: tuple[str | int, ...], one: Any, other: Any) -> bool:
    if isinstance(one, bool) and isinstance(other, bool):
        return True
    is_result = path == ("expected_output",)
    return is_result or (len(path) == 1 and not isinstance(one, str | dict | list))


def _part_at(body: Mapping[str, Any] | None, pointer: str) -> Any:
    """Return the part of a body at a JSON Pointer; `_NOTHING` if it is missing, null, or the whole body."""
    part: Any = body
    for key in parse_pointer(pointer):
        if isinstance(part, dict):
            part = part.get(key)
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return _ABSENT
    return _ABSENT if part is None or not pointer else part


MAX_COMPARED_CHARACTERS = 2_000
"""Maximum length of texts that are compared for similarity, which takes quadratic time."""

_MIN_SIMILARITY = 0.95
_CHARACTERS_PER_DIFFERENCE = 20
"""At most one of so many characters of two similar texts is unmatched."""

_NUMBER_PATTERN = re.compile(r"\d+(?:\.\d+)?")


def normalize_text(text: str) -> str:
    """Return a text normalized for comparison: Unicode form, case and white space."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def canonical_text(value: Any) -> str:
    """Return the canonical text of a JSON value."""
    try:
        return canonicalize(value).decode()
    except InvalidArgumentError:  # a model may write numbers beyond the engine's range
        return json.dumps(value, sort_keys=True)


def input_text(subject: Subject | None, test: TestCase) -> str:
    """Return the canonical text of the input of a test, without its expectations."""
    if subject is None or test.body is None:
        return normalize_text(test.input)
    if subject.problems(test.body):  # an invalid body has no defined input
        return canonical_text(test.body)
    return canonical_text(subject.same_input(test.body))


def are_similar(one: str, other: str) -> bool:
    """Return True if two inputs are nearly equal. Different numbers make inputs different."""
    if max(len(one), len(other)) > MAX_COMPARED_CHARACTERS or _NUMBER_PATTERN.findall(
        one,
    ) != _NUMBER_PATTERN.findall(other):
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    is_possible = all(ratio() >= _MIN_SIMILARITY for ratio in (matcher.real_quick_ratio, matcher.quick_ratio))
    # The matcher is slow; a bound on the edit distance rules out most pairs before it.
    return (
        is_possible
        and _is_edit_distance_within(one, other, (len(one) + len(other)) // _CHARACTERS_PER_DIFFERENCE)
        and matcher.ratio() >= _MIN_SIMILARITY
    )


def _is_edit_distance_within(one: str, other: str, most: int) -> bool:
    """Return True if two texts are equal after deleting at most so many characters of both.

    The algorithm is by E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1
    (1986). The bound makes very different texts as fast as similar ones.
    """
    furthest = [0] * (2 * most + 3)  # by diagonal; negative diagonals are at the end
    for out in range(most + 1):
        for diagonal in range(-out, out + 1, 2):
            down, right = furthest[diagonal + 1], furthest[diagonal - 1] + 1
            at = down if diagonal == -out or (diagonal != out and right <= down) else right
            while at < len(one) and at - diagonal < len(other) and one[at] == other[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            if at >= len(one) and at - diagonal >= len(other):
                return True
    return False


class Duplicates:
    """The existing tests; of two duplicates, the later one is dropped.

    Executable tests are duplicates if their inputs and expectations are equal. Another expectation of the
    same input may test another aspect, correct the first one or contradict it; only running them shows which.
    Nearly equal inputs are not duplicates, because the difference may be the one that matters. Text tests are
    duplicates if their inputs are equal, or nearly equal with the same expectation.

    Args:
        subject: the subject; None for text only.
    """

    def __init__(self, subject: Subject | None) -> None:
        self._subject = subject
        self._by_key: dict[tuple[str, ...], str] = {}
        self._texts: list[tuple[TestCase, str]] = []

    def find(self, test: TestCase) -> tuple[str, DuplicateLevel] | None:
        """Return the id of the duplicated test, and the criterion; None for a new test."""
        if (of := self._by_key.get(self._test_key(test))) is not None:
            return of, DuplicateLevel.CANONICAL
        if self._is_executable(test):
            return None
        text, expected = normalize_text(test.input), _expected_text(test)
        for other, other_text in self._texts:
            if expected == _expected_text(other) and are_similar(other_text, text):
                return other.test_id, DuplicateLevel.NEAR
        return None

    def add(self, test: TestCase) -> None:
        """Add a test that is not a duplicate."""
        self._by_key.setdefault(self._test_key(test), test.test_id)
        if not self._is_executable(test):
            self._texts.append((test, normalize_text(test.input)))

    def _is_executable(self, test: TestCase) -> bool:
        return self._subject is not None and test.body is not None

    def _test_key(self, test: TestCase) -> tuple[str, ...]:
        given = input_text(self._subject, test)
        if self._subject is None or test.body is None:
            return ("text", given)
        # Commands have their expected output outside of the body; for other subjects it is display text.
        # A command is compared by the exact output, without white space at its end.
        written = (test.expected_output or "").rstrip() if self._subject.kind is SubjectKind.COMMAND else ""
        return ("body", given, canonical_text(_without_nulls(test.body)), written)


def _expected_text(test: TestCase) -> str:
    return "" if test.expected_output is None else normalize_text(test.expected_output)


def _without_nulls(value: Any) -> Any:
    """Return a body without null members."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [*map(_without_nulls, value)] if isinstance(value, list) else value
