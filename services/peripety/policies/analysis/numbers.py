"""Numbers between two others, within the bounds and steps of a schema."""

from __future__ import annotations

import sys
from fractions import Fraction
from math import ceil, floor, inf, isfinite, nextafter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["between", "plain"]

_End: TypeAlias = tuple[Fraction, bool]
"""The end of an interval, and whether it is excluded; upper ends are negated."""

_LARGEST = 2**53 - 1
_GREATEST = sys.float_info.max


def plain(number: float) -> float:
    """Return a number as JSON writes it: an integer if every reader represents it exactly."""
    return int(number) if number == int(number) and abs(number) <= _LARGEST else number


def between(low: float, high: float, schema: Mapping[str, Any], *, whole: bool) -> tuple[float, ...]:
    """Return some numbers strictly between two others; empty only if the schema accepts none.

    Args:
        low: the lower one, or minus infinity.
        high: the higher one, or infinity.
        schema: a schema that may have bounds and a step.
        whole: True if only integers count.
    """
    lower, upper = (
        [(_exactly(sign * bound), excluded) for bound, excluded in bounds if isfinite(bound)]
        for sign, bounds in (
            (1, ((low, True), *_bounds(schema, "minimum", "exclusiveMinimum"))),
            (-1, ((high, True), *_bounds(schema, "maximum", "exclusiveMaximum"))),
        )
    )
    safe, finite = (_exactly(-_LARGEST), False), (_exactly(-_GREATEST), False)
    return tuple(
        _safe(max([safe, *lower]), max([safe, *upper]), _step(schema, whole=whole))
        or _larger(max([finite, *lower]), max([finite, *upper]))
    )


def _safe(lower: _End, upper: _End, step: Fraction | None) -> list[float]:
    """Return some multiples of a step between two ends, within the range of exact integers."""
    (least, open_low), (most, open_high) = lower, (-upper[0], upper[1])
    if step is None:
        middle = (least + most) / 2
        return _among((floor(least) + 1, middle, least, most, ceil(most) - 1), lower, upper)
    first = (floor(least / step) + 1 if open_low else ceil(least / step)) * step
    last = (ceil(most / step) - 1 if open_high else floor(most / step)) * step
    if first > last:
        return []
    # If multiples have more digits than floating-point numbers, those next to the ends may still be
    # multiples.
    return _among((first, last), lower, upper) or _among(_beside(least, most), lower, upper)


def _larger(lower: _End, upper: _End) -> list[float]:
    """Return some numbers between two ends outside the range of exact integers, multiples or not."""
    numbers = _beside(lower[0], -upper[0], -_LARGEST, _LARGEST)
    return _among((one for one in numbers if abs(one) > _LARGEST), lower, upper)


def _among(numbers: Iterable[Fraction | float], lower: _End, upper: _End) -> list[float]:
    """Return the given numbers, as JSON writes them, that lie between two ends."""
    plainly = dict.fromkeys(plain(float(number)) for number in numbers)
    exactly = ((one, _exactly(one)) for one in plainly)
    return [one for one, exact in exactly if lower <= (exact, False) and upper <= (-exact, False)]


def _beside(*numbers: Fraction | float) -> Iterator[float]:
    """Yield numbers and their floating-point neighbours."""
    for number in map(float, numbers):
        yield from (one for one in (number, nextafter(number, inf), nextafter(number, -inf)) if isfinite(one))


def _exactly(number: float) -> Fraction:
    """Return a number by its decimal digits, as schemas evaluate multiples."""
    return Fraction(str(number))


def _bounds(schema: Mapping[str, Any], included: str, excluded: str) -> Iterator[tuple[float, bool]]:
    for key, is_excluded in ((included, False), (excluded, True)):
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and abs(bound) < inf:
            yield bound, is_excluded


def _step(schema: Mapping[str, Any], *, whole: bool) -> Fraction | None:
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0:
        exact = Fraction(str(step))
        return Fraction(exact.numerator) if whole else exact
    return Fraction(1) if whole else None
