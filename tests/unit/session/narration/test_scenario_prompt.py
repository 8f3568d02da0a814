from __future__ import annotations

from itertools import takewhile
from statistics import mean
from typing import TYPE_CHECKING

import pytest

from bench.reference import SPECS
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.session.narration.prompt_room import PromptRoom
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


@pytest.mark.slow(reason="plays many turns")
@pytest.mark.parametrize("name", DOCUMENTS)
async def test_most_of_a_prompt_is_in_the_one_before_and_prompts_do_not_grow(
    name: str,
) -> None:
    sizes: list[int] = []
    shared: list[int] = []
    before = b""
    async for request in prompts(endless(DOCUMENTS[name]()), TURNS):
        prompt = prompt_bytes(request)
        sizes.append(len(prompt))
        shared.append(_in_common(before, prompt))
        before = prompt
    assert sum(shared[2:32]) >= 0.9 * sum(sizes[2:32])
    assert sum(shared[32:]) >= 0.85 * sum(sizes[32:])
    assert mean(sizes[-100:]) == pytest.approx(mean(sizes[40:140]), rel=0.1)
    assert max(sizes) < 1.15 * max(sizes[:60])


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_a_small_model_gets_a_small_prompt_of_which_most_is_cached(name: str) -> None:
    sizes: list[int] = []
    shares: list[float] = []
    before = b""
    async for request in prompts(endless(DOCUMENTS[name]()), 40, room=PromptRoom.for_window(4_096)):
        prompt = prompt_bytes(request)
        sizes.append(len(prompt))
        shares.append(_in_common(before, prompt) / len(prompt))
        before = prompt
    assert mean(shares[1:]) >= 0.8
    assert max(sizes[19:]) < 1.1 * sizes[19]


async def test_the_prompt_of_an_onlooker_and_of_a_player_begin_the_same_in_every_turn() -> None:
    for viewer in (None, "entity_1"):
        document = endless(generate_spec(1, 1))
        systems = {request.system async for request in prompts(document, 12, viewer)}
        assert len(systems) == 1
