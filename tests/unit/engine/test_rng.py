from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.engine import rng
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


SPLITMIX64_1234567 = [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_run_seeds_are_the_published_splitmix64_sequence(core: Backend) -> None:
    assert [core.run_seed(1234567, run) for run in range(3)] == SPLITMIX64_1234567


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((0, "event", 0, 0), 0x5F6200F7B74CD646),
        ((1, "event", 1, 0), 0xE8D371B026D5F7AE),
        ((2**64 - 1, "policy", 2**31, 2**31), 0xBF6FDBA15D2BAA10),
    ],
)
def test_draws_are_frozen(core: Backend, key: tuple[int, str, int, int], value: int) -> None:
    assert core.draw(*key) == value


def test_equal_requests_in_one_turn_differ_by_their_index(core: Backend) -> None:
    assert core.draw(5, "roll:a:b", 3, 0) != core.draw(5, "roll:a:b", 3, 1)


def test_draws_show_no_lag_and_flip_half_their_bits(core: Backend) -> None:
    values = [core.draw(run, "event", turn, 0) for run in range(40) for turn in range(1, 41)]
    assert len(set(values)) == len(values)
    flips = [(a ^ b).bit_count() for a, b in itertools.pairwise(values)]
    assert 31 < sum(flips) / len(flips) < 33


def test_a_unit_is_below_one_and_a_choice_below_its_count() -> None:
    assert 0 <= rng.to_unit_interval(0) < rng.to_unit_interval(2**64 - 1) < 1
    assert rng.choose(2**64 - 1, 6) == 5
    assert rng.choose(0, 6) == 0


@pytest.mark.parametrize("key", [(-1, 0, 0), (2**64, 0, 0), (0, -1, 0), (0, 0, 2**64), (0, 0, 0.5)])
def test_a_draw_is_of_unsigned_64_bit_numbers(key: tuple[int, int, int]) -> None:
    seed, turn, index = key
    with pytest.raises(InvalidArgumentError):
        engine.draw(seed, "event", turn, index)
    assert engine.draw(2**64 - 1, "event", 2**64 - 1, 2**64 - 1) >= 0
