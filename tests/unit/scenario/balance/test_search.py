"""The search, on rates that are known: the fewest numbers, the smallest moves, and ways around jumps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from peripety.scenario.balance.parameters import NumberKind, TunableNumber
from peripety.scenario.balance.search import BalanceSearch, SearchTarget
from peripety.scenario.types import NumberEdit

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.scenario.balance.candidate_runs import Setting


HARDER = SearchTarget(0.32, 0.38, is_harder=True)
EASIER = SearchTarget(0.32, 0.38, is_harder=False)


@dataclass(frozen=True)
class Played:
    """A candidate whose rate is a function of its numbers."""

    setting: Setting
    rate: float
    edits: tuple[NumberEdit, ...]


class Known:
    """Candidates that need no runs."""

    def __init__(self, rate: Callable[..., float], *values: float) -> None:
        self.numbers = [
            TunableNumber((name,), value, NumberKind.AMOUNT)
            for name, value in zip("abcdef", values, strict=False)
        ]
        self.start_setting = tuple(values)
        self.asked = 0
        self._rate = rate

    async def get(self, setting: Setting) -> Played:
        self.asked += 1
        edits = tuple(
            NumberEdit(str(knob.segments[0]), knob.value, value)
            for knob, value in zip(self.numbers, setting, strict=True)
            if value != knob.value
        )
        return Played(setting, self._rate(*setting), edits)


async def searched(aim: SearchTarget, known: Any) -> Any:
    return await BalanceSearch(known, aim).search()


def moved(found: Any) -> str:
    return "".join(edit.path for edit in found.edits)


async def test_the_one_number_that_does_it_with_the_smallest_move_is_taken() -> None:
    found = await searched(HARDER, Known(lambda a, b, c: 0.01 * a + 0.02 * b - 0.001 * c, 10, 10, 10))
    assert moved(found) == "b"
    assert 0.32 <= found.rate <= 0.325


async def test_a_number_may_have_to_fall() -> None:
    found = await searched(EASIER, Known(lambda a, b: 0.9 - 0.02 * a - 0.001 * b, 20, 10))
    assert moved(found) == "a"
    assert 0.375 <= found.rate <= 0.38
    assert found.setting[0] > 20
    found = await searched(HARDER, Known(lambda a: 0.5 - 0.02 * a, 12))
    assert found.setting[0] < 12


async def test_no_more_numbers_are_moved_than_it_takes() -> None:
    found = await searched(
        HARDER,
        Known(lambda a, b, c, d: 0.011 * a + 0.008 * (b + c) + 0.0005 * d, 9, 9, 9, 9),
    )
    assert moved(found) == "ab"


async def test_numbers_that_do_something_only_together_are_found() -> None:
    """Two ways to lose hide each other."""
    known = Known(lambda a, b, c: max(min(0.06 * a, 1.0), min(0.06 * b, 1.0), 0.001 * c), 10, 10, 10)
    found = await searched(EASIER, known)
    assert sorted(moved(found)) == ["a", "b"]


async def test_a_jump_is_made_up_for_by_another_number() -> None:
    found = await searched(HARDER, Known(lambda a, b: 0.2 + 0.25 * (a >= 12) + 0.02 * (b - 10), 10, 10))
    assert 0.32 <= found.rate <= 0.38
    assert found.setting[0] >= 12
    assert found.setting[1] < 10


async def test_a_jump_that_nothing_makes_up_for_is_told() -> None:
    steering = BalanceSearch(Known(lambda a, b: 0.2 + 0.4 * (a >= 12) + 0.0 * b, 10, 10), HARDER)  # type: ignore[arg-type]
    assert await steering.search() is None
    assert steering.discontinuity is not None
    assert (steering.discontinuity.below.rate, steering.discontinuity.above.rate) == pytest.approx((0.2, 0.6))
    assert steering.discontinuity.index == 0


async def test_what_is_out_of_reach_leaves_the_closest() -> None:
    steering = BalanceSearch(Known(lambda a, b: 0.01 * a + 0.003 * b, 10, 10), HARDER)  # type: ignore[arg-type]
    assert await steering.search() is None
    assert steering.discontinuity is None
    assert steering.closest is not None
    assert steering.closest.rate == pytest.approx(0.195)


async def test_nothing_moves_where_nothing_has_to() -> None:
    known = Known(lambda a: 0.035 * a, 10)
    found = await searched(HARDER, known)
    assert (moved(found), known.asked) == ("", 1)


async def test_a_result_is_rounded_as_far_as_it_still_holds() -> None:
    steering = BalanceSearch(Known(lambda a: 0.01 * a, 24.31), HARDER)  # type: ignore[arg-type]
    found = await steering.search()
    assert found is not None
    assert (await steering.round_digits(found)).setting in {(33.0,), (32.0,)}


@pytest.mark.parametrize("aim", [HARDER, EASIER])
@pytest.mark.parametrize("steepness", [0.5, 3, 20])
async def test_any_smooth_rate_is_met(aim: SearchTarget, steepness: float) -> None:
    middle = 13 if aim.is_harder else 8

    def rate(a: float, b: float) -> float:
        return 1 / (1 + math.exp(-steepness * (0.7 * a + 0.3 * b - middle)))

    found = await searched(aim, Known(rate, 10, 10))
    assert 0.32 <= found.rate <= 0.38


async def test_numbers_that_stand_in_each_others_way_are_not_moved_together() -> None:
    def rate(a: float, b: float, c: float) -> float:
        both = 0.2 if min(a, b) > 12 else 0.0
        return 0.25 + 0.01 * (a - 10) + 0.009 * (b - 10) + 0.008 * (c - 10) - both

    found = await searched(HARDER, Known(rate, 10, 10, 10))
    assert 0.32 <= found.rate <= 0.38
    assert moved(found) == "ac"
