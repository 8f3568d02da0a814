"""Numbers between two others, as far as a schema accepts them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["between", "plain"]

_LARGEST = 2**53 - 1


def plain(number: float) -> float:
    """A number as JSON writes it: an integer where it is one that every reader knows exactly."""
    return int(number) if number == int(number) and abs(number) <= _LARGEST else number


def between(low: float, high: float, schema: Mapping[str, Any], *, whole: bool) -> tuple[float, ...]:
    """Some numbers between two others, both excluded; none only if a schema accepts none.

    Args:
        low: the lower one, or minus infinity.
        high: the higher one, or infinity.
        schema: what may have bounds and a step.
        whole: whether only integers will do.
    """
    least, most = Fraction(-_LARGEST), Fraction(_LARGEST)
    open_low = open_high = False
    for bound, excluded in ((low, True), *_bounds(schema, "minimum", "exclusiveMinimum")):
        if isfinite(bound) and (Fraction(bound), excluded) > (least, open_low):
            least, open_low = Fraction(bound), excluded
    for bound, excluded in ((high, True), *_bounds(schema, "maximum", "exclusiveMaximum")):
        if isfinite(bound) and (-Fraction(bound), excluded) > (-most, open_high):
            most, open_high = Fraction(bound), excluded
    step = _step(schema, whole=whole)
    if step is not None:
        first = (floor(least / step) + 1 if open_low else ceil(least / step)) * step
        last = (ceil(most / step) - 1 if open_high else floor(most / step)) * step
        return tuple(_distinct(first, last)) if first <= last else ()
    if least > most or (least == most and (open_low or open_high)):
        return ()
    choices = [Fraction(floor(least) + 1), (least + most) / 2, least, most, Fraction(ceil(most) - 1)]
    return tuple(
        _distinct(
            *(one for one in choices if low < float(one) < high and least <= Fraction(float(one)) <= most)
        )
    )


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


def _distinct(*numbers: Fraction) -> Iterator[float]:
    yield from dict.fromkeys(plain(float(number)) for number in numbers)
