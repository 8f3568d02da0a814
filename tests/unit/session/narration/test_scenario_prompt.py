from __future__ import annotations

from itertools import takewhile
from statistics import mean
from typing import TYPE_CHECKING

import pytest

from bench.reference import SPECS
from peripety.scenario.spec_generator.generator import generate_spec
from support.session.sessions import endless, prompt_bytes, prompts

if TYPE_CHECKING:
    from collections.abc import Callable


TURNS = 500
DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "numbers": SPECS["numeric"],
    "mixed": SPECS["mixed"],
    "random": lambda: generate_spec(1, 1),
}


def _in_common(one: bytes, other: bytes) -> int:
    """Return the length in bytes of the common prefix of two prompts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@pytest.mark.slow_after(1, reason="plays many turns")
@pytest.mark.parametrize("name", DOCUMENTS)
async def test_prompts_stay_the_same_for_the_most_part_and_do_not_grow(name: str) -> None:
    sizes: list[int] = []
    shares: list[float] = []
    before = b""
    async for request in prompts(endless(DOCUMENTS[name]()), TURNS):
        prompt = prompt_bytes(request)
        sizes.append(len(prompt))
        shares.append(_in_common(before, prompt) / len(prompt))
        before = prompt
    assert min(shares[1:]) >= 0.8
    assert sizes[499] == pytest.approx(sizes[19], rel=0.1)
    assert mean(sizes[490:]) == pytest.approx(mean(sizes[15:25]), rel=0.05)
    assert max(sizes[20:]) < 1.1 * sizes[19]


async def test_the_prompt_of_an_onlooker_and_of_a_player_begin_the_same_in_every_turn() -> None:
    for viewer in (None, "entity_1"):
        document = endless(generate_spec(1, 1))
        systems = {request.system async for request in prompts(document, 12, viewer)}
        assert len(systems) == 1
