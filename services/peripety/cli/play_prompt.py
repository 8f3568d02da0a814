"""The prompt of `peripety play`: a line is the key or the name of an action, other words, or a command.

Only an action or words lead to a turn. Commands, questions and typing errors cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2
from peripety.cli.game import short_id
from peripety.cli.output import one_line, printable
from peripety.cli.players import TurnInput, describe_domain, parse_value
from peripety.cli.prompt import prompt_line
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from peripety.cli.game import Game
    from peripety.cli.render.game_words import GameWords
    from peripety.cli.render.story import StoryView


_PROMPT = "> "
_FORECAST_RUNS = 1_000
_ASK = "ask"
_STOP = frozenset({"quit", "q", "exit"})
_END = object()


class PlayPrompt:
    """Prompt at which the user plays.

    Args:
        view: shows what commands return.
        how_to_continue: returns the command that continues a session.
        where_stored: returns the place where sessions are stored, as the end of a sentence in some words.
        abandon: called while the prompt waits; True ends it with `PromptAbandonedError`.
    """

    def __init__(
        self,
        view: StoryView,
        how_to_continue: Callable[[str], str],
        where_stored: Callable[[GameWords], str],
        abandon: Callable[[], bool] | None = None,
    ) -> None:
        self._view = view
        self._how_to_continue = how_to_continue
        self._where_stored = where_stored
        self._abandon = abandon
        self._keys: dict[str, str] = {}
        self._has_hinted = False
        self._typed_ahead: str | None = None
        self._plain: dict[str, Callable[[Game], Awaitable[None]]] = {
            "look": self._look,
            "status": self._status,
            "undo": self._undo,
            "fork": self._fork,
            "odds": self._odds,
            "save": self._save,
            "help": self._help,
        }

    async def choose(self, game: Game) -> TurnInput | None:
        """Read lines and carry out commands until one is a turn; None to stop.

        Raises:
            PromptAbandonedError: the prompt was ended from outside.
        """
        if not self._has_hinted:
            self._view.note(self._words.say("hint"))
            self._has_hinted = True
        if game.is_over:
            self._view.note(self._words.say("over"))
        while (line := self._next_line()) is not None:
            try:
                choice = await self._handle(game, line)
            except PeripetyError as error:
                self._view.note(f"{error.message}.")
                continue
            if choice is _END:
                return None
            if isinstance(choice, TurnInput):
                return choice
        return None

    def _next_line(self) -> str | None:
        line, self._typed_ahead = self._typed_ahead, None
        return prompt_line(_PROMPT, self._abandon) if line is None else line

    def say_goodbye(self, game: Game) -> None:
        """Show the command that continues the game."""
        self._view.note(self._words.say("goodbye", how=self._how_to_continue(game.session.session_id)))

    @property
    def _words(self) -> GameWords:
        return self._view.words

    async def _handle(self, game: Game, line: str) -> object:
        """Carry out a line; return the turn that it is, `_END` to stop, or None."""
        head, _, rest = line.removeprefix("/").partition(" ")
        word, rest = head.lower(), rest.strip()
        named = None if game.is_over else self._find_named_action(game, line)
        if word in {"", "?"} and not rest:
            self._list_actions(game)
        elif word in _STOP and not rest:
            return _END
        elif word in self._plain and not rest:
            await self._plain[word](game)
        elif word == _ASK and rest and named is None:
            self._view.answer(await game.ask(rest))
        elif word == "rewind" and (rest.isdecimal() or not rest):
            await self._rewind(game, rest)
        elif game.is_over:
            self._view.note(self._words.say("over"))
        elif word == "wait" and not rest:
            return TurnInput()
        elif word.isdecimal() and word.isascii():
            return self._act(game, word, rest)
        elif named is not None:
            return self._act(game, *named)
        else:
            return self._speak(game, line)
        return None

    def _speak(self, game: Game, line: str) -> TurnInput | None:
        """Return words as a turn; explain them instead if they begin with an action that is not legal now."""
        refused = self._find_refused_action(game, line)
        if refused is None:
            return TurnInput(words=line)
        self._view.explain_refusal(game, refused)
        return None

    def _find_named_action(self, game: Game, line: str) -> tuple[str, str] | None:
        """Return the key of the action whose name begins the line, and the numbers after it."""
        self._assign_keys(game)
        names = _list_names(game)
        words = line.casefold().split()
        for end in range(len(words), 0, -1):
            name = " ".join(words[:end])
            keys = [key for key, of in self._keys.items() if names[of] == name]
            if len(keys) == 1:
                return keys[0], " ".join(words[end:])
            if not words[end - 1].isdecimal():
                break
        return None

    def _find_refused_action(self, game: Game, line: str) -> str | None:
        """Return the id of the action whose name begins the line, if it is not legal now."""
        text = " ".join(line.casefold().split())
        begun = {
            action_id: name
            for action_id, name in _list_names(game).items()
            if name and text.startswith(name) and not text[len(name) : len(name) + 1].isalnum()
        }
        longest = max(begun.values(), key=len, default="")
        found = [action_id for action_id, name in begun.items() if name == longest]
        is_legal = any(action.action_id in found for action in game.legal_actions)
        return found[0] if len(found) == 1 and not is_legal else None

    def _act(self, game: Game, key: str, values: str) -> TurnInput | None:
        """Return the action of a key, with typed values or with answers to questions."""
        self._assign_keys(game)
        legal = {action.action_id: action for action in game.legal_actions}
        action = legal.get(self._keys.get(key, ""))
        if action is None:
            if key in self._keys:
                self._view.explain_refusal(game, self._keys[key])
            else:
                self._view.note(self._words.say("no_action"))
            return None
        call = engine_pb2.ActionCall(action_id=action.action_id)
        typed = values.split(maxsplit=max(len(action.params) - 1, 0)) if values else []
        if len(typed) > len(action.params):
            self._view.note(self._words.say("no_value", name=one_line(action.name)))
            return None
        for place, param in enumerate(action.params):
            value = self._read_value(param, typed[place] if place < len(typed) else None)
            if value is None:
                return None
            call.params[param.name].CopyFrom(value)
        return TurnInput([call])

    def _read_value(self, param: engine_pb2.Param, typed: str | None) -> engine_pb2.ParamValue | None:
        """Return a legal value, typed or as an answer; None after an empty line or a command."""
        name = one_line(param.name).replace("_", " ")
        question = f"{name} ({describe_domain(param)}) > "
        while True:
            text = prompt_line(question, self._abandon) if typed is None else typed
            if text is None or text.lower() in {*self._plain, *_STOP}:
                self._typed_ahead = "quit" if text is None else text
                return None
            if not text:
                self._view.note(self._words.say("nothing_done"))
                return None
            try:
                value = parse_value(param, text)
            except ValueError:
                value = None
            if value is not None and _is_legal(param, value):
                return value
            self._view.note(f"{printable(text[:40])} is not possible: {name} is {describe_domain(param)}.")
            typed = None

    def _list_actions(self, game: Game) -> None:
        if game.is_over:
            self._view.note(self._words.say("over"))
            return
        self._assign_keys(game)
        names = {action_id: key for key, action_id in self._keys.items()}
        listed = ((names[action.action_id], action) for action in game.legal_actions)
        self._view.actions(sorted(listed, key=lambda pair: int(pair[0])))

    def _assign_keys(self, game: Game) -> None:
        """Give each action of the scenario the number of its place, whether it is legal now or not."""
        ids = [action["id"] for action in game.spec.get("actions") or ()]
        ids += [action.action_id for action in game.legal_actions if action.action_id not in ids]
        self._keys = {str(number): action_id for number, action_id in enumerate(ids, start=1)}

    async def _look(self, game: Game) -> None:
        self._view.look(game)

    async def _status(self, game: Game) -> None:
        self._view.describe_status(game)

    async def _undo(self, game: Game) -> None:
        if game.session.turn:
            await self._go_back(game, game.session.turn - 1)
        else:
            self._view.note(self._words.say("no_undo"))

    async def _rewind(self, game: Game, turn: str) -> None:
        if turn and int(turn) < game.session.turn:
            await self._go_back(game, int(turn))
        elif game.session.turn:
            self._view.note(self._words.say("which_turn", last=game.session.turn - 1))
        else:
            self._view.note(self._words.say("no_rewind"))

    async def _go_back(self, game: Game, turn: int) -> None:
        await game.rewind(turn)
        self._view.note(self._words.say("back_at_turn" if turn else "back_at_start", turn=turn))
        self._view.status(game)

    async def _fork(self, game: Game) -> None:
        before = game.session.session_id
        await game.fork()
        copy, how = short_id(game.session.session_id), self._how_to_continue(before)
        self._view.note(self._words.say("forked", copy=copy, how=how))

    async def _odds(self, game: Game) -> None:
        if game.is_over:
            self._view.note(self._words.say("over"))
            return
        self._view.odds(await game.forecast(_FORECAST_RUNS))

    async def _save(self, game: Game) -> None:
        place = self._where_stored(self._words)
        self._view.note(self._words.say("stored", turn=game.session.turn, place=place))
        self.say_goodbye(game)

    async def _help(self, _game: Game) -> None:
        self._view.commands()


def _list_names(game: Game) -> dict[str, str]:
    """Return the names of the actions by id, for comparisons."""
    names = {action["id"]: action.get("name", "") for action in game.spec.get("actions") or ()}
    names |= {action.action_id: action.name for action in game.legal_actions}
    return {action_id: " ".join(name.casefold().split()) for action_id, name in names.items()}


def _is_legal(param: engine_pb2.Param, value: engine_pb2.ParamValue) -> bool:
    if param.choices:
        return value in param.choices
    if value.WhichOneof("kind") == "number":
        return param.minimum <= value.number <= param.maximum
    return True
