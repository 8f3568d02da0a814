from __future__ import annotations

from itertools import islice

import pytest

from peripety.engine._reference.codegen.runner import DrawBlocks
from peripety.engine.rng import draw, stream_key

SEEDS = [0, 1, 6457827717110365317, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [0, 1, 3])
def test_rows_hold_the_draws_of_each_turn_across_blocks(seed: int, width: int) -> None:
    policy, event = stream_key("policy"), stream_key("event")
    rows = list(islice(DrawBlocks(width).rows(seed), 40))
    assert rows == [
        (draw(seed, event, turn, 0), *(draw(seed, policy, turn, index) for index in range(width)))
        for turn in range(1, 41)
    ]


def test_runs_share_nothing_but_the_counters() -> None:
    draws = DrawBlocks(1)
    first, second = draws.rows(1), draws.rows(2)
    mixed = [row for pair in zip(islice(first, 20), islice(second, 20), strict=True) for row in pair]
    assert mixed[::2] == list(islice(DrawBlocks(1).rows(1), 20))
    assert mixed[1::2] == list(islice(DrawBlocks(1).rows(2), 20))
