"""The automatic player: the best forecast, and variety among equals."""

from __future__ import annotations

from peripety.cli.players import ForecastPlayer
from support.session.games import StoredGame, action, number


async def test_the_action_with_the_best_forecast_is_taken() -> None:
    game = StoredGame(legal=(action("a"), action("b")))
    game.won = {"a": 0.2, "b": 0.6}
    choice = await ForecastPlayer().choose(game)
    assert [call.action_id for call in choice.actions] == ["b"]


async def test_among_equals_the_one_that_was_taken_least_is_next() -> None:
    game = StoredGame(legal=(action("a"), action("b"), action("c")))
    game.won = {"a": 0.51, "b": 0.5, "c": 0.1}
    player = ForecastPlayer()
    taken = [(await player.choose(game)).actions[0].action_id for _ in range(4)]
    assert taken == ["a", "b", "a", "b"]


async def test_an_action_that_is_refused_is_not_taken_and_without_one_the_turn_passes() -> None:
    game = StoredGame(legal=(action("a"),))
    assert (await ForecastPlayer().choose(game)).actions == []


async def test_parameters_have_their_least_or_greatest_value() -> None:
    game = StoredGame(legal=(action("a", number(1, 4), number(2, 2, "other")),))
    game.won = {"a": 0.5}
    (call,) = (await ForecastPlayer().choose(game)).actions
    assert call.params["amount"].number in {1, 4}
    assert call.params["other"].number == 2
