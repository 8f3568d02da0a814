from __future__ import annotations

import itertools
from functools import partial

import pytest

from peripety import engine
from peripety.llmsim.delivery.plan import DeliverySettings, ResponseEnd, answer_start_ms, pace_frames
from peripety.llmsim.script.types import Pace
from peripety.llmsim.types import FrameTag, StreamFrame


def frames(*tokens: int) -> list[StreamFrame[int]]:
    texts = [StreamFrame(number, FrameTag.TEXT, count) for number, count in enumerate(tokens)]
    return [StreamFrame(-1, FrameTag.START), *texts, StreamFrame(-2, FrameTag.END)]


def times(pace: Pace, *tokens: int, delay_ms: int = 0, seed: int = 1) -> list[float]:
    def draw(purpose: str, index: int) -> int:
        return engine.draw(seed, purpose, 0, index)

    plan = pace_frames(frames(*tokens), DeliverySettings(pace, draw, delay_ms))
    assert plan.end is ResponseEnd.CLEAN
    return [*(step.at_ms for step in plan.steps), plan.ends_ms]


def test_without_a_rate_everything_leaves_with_the_first_token() -> None:
    assert times(Pace(first_token_ms=40), 1, 1, delay_ms=100) == [140] * 5


@pytest.mark.parametrize("pace", [Pace(first_token_ms=40), Pace(first_token_ms=40, tokens_per_second=100)])
def test_noise_before_the_answer_is_there_to_be_waited_with(pace: Pace) -> None:
    noisy = [StreamFrame(0, FrameTag.NOISE), *frames(1), StreamFrame(0, FrameTag.NOISE)]
    plan = pace_frames(noisy, DeliverySettings(pace, lambda _purpose, _index: 0, delay_ms=100))
    assert [step.at_ms for step in plan.steps][:3] == [0, 140, 140]
    assert plan.steps[-1].at_ms >= 140
    assert answer_start_ms(plan) == 140


def test_each_token_has_its_place_in_absolute_time() -> None:
    assert times(Pace(first_token_ms=40, tokens_per_second=100), 1, 1, 1) == [40, 40, 50, 60, 70, 70]


def test_a_chunk_leaves_with_its_first_token() -> None:
    assert times(Pace(tokens_per_second=100), 5, 5, 2) == [0, 0, 50, 100, 120, 120]


def test_a_thousand_tokens_take_exactly_their_time() -> None:
    assert times(Pace(first_token_ms=7, tokens_per_second=30), *[1] * 3000)[-1] == pytest.approx(100_007)


@pytest.mark.parametrize("jitter", [0.2, 1.0])
@pytest.mark.parametrize("sizes", [[1] * 200, [5] * 40, [1, 9] * 20])
def test_jitter_moves_chunks_and_neither_the_order_nor_the_whole(jitter: float, sizes: list[int]) -> None:
    even = times(Pace(first_token_ms=10, tokens_per_second=100), *sizes)
    moved = times(Pace(first_token_ms=10, tokens_per_second=100, jitter=jitter), *sizes)
    assert moved != even
    assert moved == sorted(moved)
    assert (moved[:2], moved[-2:]) == (even[:2], even[-2:])


def test_jitter_keeps_each_gap_within_its_share() -> None:
    moved = times(Pace(tokens_per_second=100, jitter=0.3), *[1] * 500)[1:-2]
    gaps = [after - before for before, after in itertools.pairwise(moved)]
    assert 7 <= min(gaps) < 8
    assert 12 < max(gaps) <= 13


def test_the_seed_decides_the_jitter() -> None:
    jittered = partial(times, Pace(tokens_per_second=100, jitter=0.5), *[1] * 20)
    assert jittered(seed=1) == jittered(seed=1) != jittered(seed=2)
