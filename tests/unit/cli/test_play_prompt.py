"""The prompt of `peripety play`: keys, words and commands."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from peripety.api.common.v1 import engine_pb2
from peripety.cli.play_prompt import PlayPrompt
from peripety.cli.render.story import StoryView
from support.session.games import ONGOING, StoredGame, action, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.cli.players import TurnInput


LOST = engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_LOST)
SPEC = {"actions": [{"id": "rest"}, {"id": "hidden", "name": "Hidden one"}, {"id": "gather"}], "horizon": 9}
FLAG = engine_pb2.Param(name="is_loud", type=engine_pb2.PARAM_TYPE_BOOLEAN)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Lines that the user types, followed by end of input."""
    lines: list[str] = []

    def read(_: str) -> str:
        if not lines:
            raise EOFError
        return lines.pop(0)

    monkeypatch.setattr("builtins.input", read)
    yield lines
    assert not lines, "not every line was read"


def named(action_id: str, name: str, *params: engine_pb2.Param) -> engine_pb2.LegalAction:
    return engine_pb2.LegalAction(action_id=action_id, name=name, params=params)


class Played:
    """A prompt with a game and its captured output."""

    def __init__(
        self, *legal: engine_pb2.LegalAction, turn: int = 5, status: engine_pb2.RunStatus = ONGOING
    ) -> None:
        self.stream = io.StringIO()
        self.view = StoryView(Console(file=self.stream, width=100, soft_wrap=True, highlight=False))
        self.game = StoredGame(
            SPEC, legal or (action("rest"), action("gather", number(1, 4))), turn=turn, status=status
        )
        self.view.open(self.game)
        self.stream.truncate(0)
        self.stream.seek(0)
        self.prompt = PlayPrompt(
            self.view, lambda name: f"peripety play --session {name[:8]}", lambda _: "in a file"
        )

    async def choose(self) -> TurnInput | None:
        return await self.prompt.choose(self.game)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


async def test_a_key_takes_its_action(typed: list[str]) -> None:
    typed.append("1")
    choice = await Played().choose()
    assert choice is not None
    assert [call.action_id for call in choice.actions] == ["rest"]


async def test_a_value_follows_its_key_or_is_asked_for(typed: list[str]) -> None:
    for lines in (["3 2"], ["3", "2"], ["3", "two", "9", "2"]):
        typed += lines
        choice = await Played().choose()
        assert choice is not None
        assert choice.actions[0].params["amount"].number == 2


@pytest.mark.parametrize("lines", [["Collect Wood 2"], ["collect  wood", "2"], ["collect wood 9", "2"]])
async def test_the_whole_name_of_an_action_is_its_key(typed: list[str], lines: list[str]) -> None:
    typed += lines
    played = Played(named("gather", "Collect wood", number(1, 4)))
    choice = await played.choose()
    assert choice is not None
    assert (choice.words, choice.actions[0].params["amount"].number) == ("", 2)
    assert ("9 is not possible" in played.text) is ("9" in lines[0])


async def test_the_name_of_an_action_that_is_not_legal_costs_no_turn(typed: list[str]) -> None:
    typed += ["hidden one", "q"]
    assert await Played().choose() is None


@pytest.mark.parametrize("line", ["Hidden one by 2", "hidden  one, please", "Hidden one: now"])
async def test_words_that_begin_with_an_action_that_is_not_legal_cost_no_turn(
    typed: list[str], line: str
) -> None:
    typed += [line, "1"]
    played = Played()
    choice = await played.choose()
    assert "You cannot do that now." in played.text
    assert choice is not None
    assert [call.action_id for call in choice.actions] == ["rest"]


@pytest.mark.parametrize("line", ["hidden ones", "the hidden one", "Hidden one again at length"])
async def test_words_that_may_mean_an_action_that_is_legal_are_said(typed: list[str], line: str) -> None:
    typed.append(line)
    choice = await Played(named("rest", "Hidden one again")).choose()
    assert choice is not None
    assert (choice.words, choice.actions) == (line, [])


async def test_the_name_of_an_action_may_begin_with_ask(typed: list[str]) -> None:
    typed.append("ask the keeper")
    choice = await Played(named("rest", "Ask the keeper")).choose()
    assert choice is not None
    assert [call.action_id for call in choice.actions] == ["rest"]


async def test_a_name_that_two_actions_have_is_said(typed: list[str]) -> None:
    typed.append("same")
    choice = await Played(named("rest", "Same"), named("gather", "Same")).choose()
    assert choice is not None
    assert choice.words == "same"


async def test_keys_stay_the_same_when_other_actions_are_not_legal(typed: list[str]) -> None:
    typed += ["1", "3 1"]
    played = Played(action("gather", number(1, 4)))
    choice = await played.choose()
    assert "You cannot do that now." in played.text
    assert choice is not None
    assert choice.actions[0].action_id == "gather"


@pytest.mark.parametrize("mistake", ["0", "9", "9" * 5000])
async def test_a_number_that_is_not_listed_costs_no_turn(typed: list[str], mistake: str) -> None:
    typed += [mistake, "1"]
    played = Played()
    assert await played.choose() is not None
    assert "That number has no action" in played.text


async def test_an_empty_value_gives_up_the_action_and_a_command_takes_its_place(typed: list[str]) -> None:
    typed += ["3", "", "3", "status", "3", "quit"]
    played = Played()
    assert await played.choose() is None
    assert "Nothing is done." in played.text
    assert "Turn 5, 4 turns left." in played.text


@pytest.mark.parametrize(("answer", "flag"), [("yes", True), ("NO", False)])
async def test_yes_and_no_are_understood(typed: list[str], answer: str, flag: bool) -> None:
    typed += ["1", "perhaps", answer]
    choice = await Played(action("rest", FLAG)).choose()
    assert choice is not None
    assert choice.actions[0].params["is_loud"].flag is flag


@pytest.mark.parametrize(
    "words", ["say this", "-1", "1.5", "²", "look around", "wait for it", "undo it", "ask"]
)
async def test_any_other_words_are_said(typed: list[str], words: str) -> None:
    typed.append(words)
    choice = await Played().choose()
    assert choice is not None
    assert (choice.words, choice.actions) == (words, [])


async def test_wait_is_a_turn_without_an_action(typed: list[str]) -> None:
    typed.append("wait")
    choice = await Played().choose()
    assert choice is not None
    assert (choice.words, choice.actions) == ("", [])


@pytest.mark.parametrize("key", ["", "?"])
async def test_enter_lists_the_actions(typed: list[str], key: str) -> None:
    typed += [key, "q"]
    played = Played()
    assert await played.choose() is None
    assert [line.split()[:2] for line in played.text.splitlines()[1:3]] == [["1", "Rest"], ["3", "Gather"]]


@pytest.mark.parametrize("lines", [["q"], ["quit"], ["/quit"], []])
async def test_quit_and_the_end_of_input_stop(typed: list[str], lines: list[str]) -> None:
    typed += lines
    played = Played()
    assert await played.choose() is None
    played.prompt.say_goodbye(played.game)
    assert "Continue with: peripety play --session 11111111" in played.text


async def test_turns_are_taken_back(typed: list[str]) -> None:
    typed += ["undo", "rewind 2", "rewind 8", "rewind", "rewind 0", "undo", "rewind 1"]
    played = Played()
    assert await played.choose() is None
    assert played.game.calls == [("rewind", 4), ("rewind", 2), ("rewind", 0)]
    assert "Back at the end of turn 4." in played.text
    assert played.text.count("Give a turn from 0 to 1") == 2
    assert "No turn is left to take back." in played.text
    assert "No turn is left to go back to." in played.text


async def test_a_fork_continues_in_the_copy_and_says_so(typed: list[str]) -> None:
    typed.append("fork")
    played = Played()
    assert await played.choose() is None
    assert "the copy 22222222" in played.text
    assert "peripety play --session 11111111" in played.text
    assert played.game.session.session_id.startswith("22222222")


async def test_questions_and_odds_cost_no_turn(typed: list[str]) -> None:
    typed += ["ask how much alpha is left?", "/ask  who? ", "odds"]
    played = Played()
    assert await played.choose() is None
    assert played.game.calls == [("ask", "how much alpha is left?"), ("ask", "who?")]
    assert "Alpha: 3. [turn 2]" in played.text
    assert "25%" in played.text


async def test_save_says_where_the_game_is_stored(typed: list[str]) -> None:
    typed.append("save")
    played = Played()
    assert await played.choose() is None
    assert "Turn 5 is stored in a file." in played.text


async def test_help_names_every_command(typed: list[str]) -> None:
    typed.append("help")
    played = Played()
    assert await played.choose() is None
    for command in ("look", "status", "undo", "rewind", "fork", "odds", "ask", "save", "quit", "wait"):
        assert f"  {command}" in played.text


async def test_after_the_end_only_commands_are_carried_out(typed: list[str]) -> None:
    typed += ["1", "some words", "odds", "undo"]
    played = Played(status=LOST)
    assert await played.choose() is None
    assert played.text.count("The story is over.") == 4
    assert "25%" not in played.text
    assert played.game.calls == [("rewind", 4)]
