"""A narrator remembers words of the player: it answers questions from its prompt alone."""

from __future__ import annotations

import pytest

from peripety.session.narration.prompt_room import PromptRoom
from support.session.recall import RECALLED_TURNS, recall_rate
from support.session.sessions import FULL_ROOM


@pytest.mark.slow(reason="plays hundreds of turns")
@pytest.mark.parametrize("turn", RECALLED_TURNS)
async def test_a_detail_of_the_second_turn_is_known_much_later(turn: int) -> None:
    assert await recall_rate(turn, FULL_ROOM) >= 0.9


@pytest.mark.slow(reason="plays dozens of turns")
async def test_a_small_model_knows_at_least_what_was_just_said() -> None:
    assert await recall_rate(3, PromptRoom.for_window(4_096)) >= 0.9
