"""Contradictions between tests with the same input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim.schema import segments
from peripety.testgen.model import TestStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.testgen.model import Examined, TestCase

__all__ = ["contradict"]

_NOTHING = object()


def contradict(one: TestCase, examined: Examined, other: TestCase, other_examined: Examined) -> bool:
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
        return any(_is_exact(path, *values) for path, *values in _differences(one, other))
    wrong, found, right = (
        (one, examined, other) if examined.status is TestStatus.FAILED else (other, other_examined, one)
    )
    places = [finding.path for finding in found.findings if _at(wrong.body, finding.path) is not _NOTHING]
    if places:
        return any(_at(right.body, place) is not _NOTHING for place in places)
    return any(True for _ in _differences(one, other))


def _differences(one: TestCase, other: TestCase) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield the places where both tests have expectations, and different ones."""
    if one.body == other.body and one.expected_output is not None and other.expected_output is not None:
        yield ("expected_output",), one.expected_output, other.expected_output
    yield from _differing(one.body, other.body, ())


def _differing(
    one: Any, other: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if one is None or other is None or one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict) and (shared := one.keys() & other.keys()):
        for key in sorted(shared):
            yield from _differing(one[key], other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (part, counterpart) in enumerate(zip(one, other, strict=True)):
            yield from _differing(part, counterpart, (*path, index))
    else:
        yield path, one, other


def _is_exact(path: tuple[str | int, ...], one: Any, other: Any) -> bool:
    if isinstance(one, bool) and isinstance(other, bool):
        return True
    is_result = path == ("expected_output",)
    return is_result or (len(path) == 1 and not isinstance(one, str | dict | list))


def _at(body: Mapping[str, Any] | None, pointer: str) -> Any:
    """Return the part of a body at a JSON Pointer; `_NOTHING` if it is missing, null, or the whole body."""
    part: Any = body
    for key in segments(pointer):
        if isinstance(part, dict):
            part = part.get(key)
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return _NOTHING
    return _NOTHING if part is None or not pointer else part
