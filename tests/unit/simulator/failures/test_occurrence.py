from __future__ import annotations

from functools import partial

import pytest

from peripety import engine
from peripety.llmsim.faults.injection import occurs
from peripety.llmsim.script.types import Fault


def hit(failure: Fault, matches: int, seed: int = 7) -> list[int]:
    draw = partial(engine.draw, seed, "failure", 0)
    return [ordinal for ordinal in range(matches) if occurs(failure, ordinal, draw)]


def test_without_a_count_every_match_fails() -> None:
    assert hit(Fault("overloaded"), 5) == [0, 1, 2, 3, 4]


def test_a_count_alone_takes_the_first_matches() -> None:
    assert hit(Fault("overloaded", times=3), 20) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(50))
def test_a_count_among_the_next_takes_exactly_that_many_of_them_and_none_later(seed: int) -> None:
    chosen = hit(Fault("overloaded", times=3, of=10), 40, seed)
    assert len(chosen) == 3
    assert max(chosen) < 10


def test_the_seed_chooses_which_matches_fail() -> None:
    failure = Fault("overloaded", times=3, of=10)
    assert hit(failure, 10, seed=1) == hit(failure, 10, seed=1)
    assert len({tuple(hit(failure, 10, seed)) for seed in range(50)}) > 20


def test_every_match_of_the_window_is_as_likely_as_any_other() -> None:
    failure = Fault("overloaded", times=3, of=10)
    counts = [0] * 10
    for seed in range(2000):
        for ordinal in hit(failure, 10, seed):
            counts[ordinal] += 1
    assert all(500 < count < 700 for count in counts)


@pytest.mark.parametrize(("times", "of"), [(1, 1), (1, 2), (2, 3), (7, 16), (9, 17), (100, 1000)])
def test_the_count_is_exact_whatever_the_window(times: int, of: int) -> None:
    assert len(hit(Fault("overloaded", times=times, of=of), 2 * of)) == times


def test_a_late_match_of_a_large_window_costs_no_more_than_an_early_one() -> None:
    failure = Fault("overloaded", times=2**31, of=2**32 - 1)
    draws: list[int] = []

    def draw(index: int) -> int:
        draws.append(index)
        return engine.draw(7, "failure", 0, index)

    for ordinal in range(2**31, 2**31 + 100):
        occurs(failure, ordinal, draw)
    assert len(draws) < 100 * 20


def test_as_many_as_there_are_means_all_of_them() -> None:
    assert hit(Fault("overloaded", times=10, of=10), 12) == list(range(10))


def test_probability_is_the_share_of_matches_that_fail() -> None:
    assert 2800 < len(hit(Fault("overloaded", probability=0.3), 10_000)) < 3200
    assert hit(Fault("overloaded", probability=0.0), 100) == []
    assert len(hit(Fault("overloaded", probability=1.0), 100)) == 100
