"""Players of a game: the user at the terminal, or automatic players; and the point of view."""

from __future__ import annotations

import json
import random
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from peripety.api.common.v1 import engine_pb2
from peripety.cli.output import printable, result_console
from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


_QUESTION = "number, free text, Enter to wait, ? for help, q to stop > "
_WAIT_SHARE, _SPEAK_SHARE = 0.1, 0.3
_STOP = {"q", "quit"}
_EXPLAIN = {"?", "help"}
_ASK = "/ask "
_HELP = (
    "number   take that action; its parameters are requested next",
    "text     pass the text to the narrator; without an action",
    "/ask     a question about the game, such as /ask what happened in turn 2; this is not a turn",
    "Enter    wait: take no action in this turn",
    "?        show this",
    "q        stop; so does Ctrl-D",
)


@dataclass(frozen=True)
class TurnInput:
    """The input of a turn: actions, free text, or neither; or a question, which is not a turn."""

    actions: list[engine_pb2.ActionCall] = field(default_factory=list)
    words: str = ""
    question: str = ""


class GamePlayer(Protocol):
    """A source of choices."""

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput | None:
        """Return the choice for this turn; None to stop playing."""


class RoundRobinPlayer:
    """Automatic player that takes the legal actions one after another.

    Cycles parameters through their ranges.
    """

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput:
        """Return the choice that the turn number determines."""
        if not legal:
            return TurnInput()
        action = legal[(turn - 1) % len(legal)]
        params = {param.name: _rotating_value(param, turn) for param in action.params}
        return TurnInput([engine_pb2.ActionCall(action_id=action.action_id, params=params)])


def _rotating_value(param: engine_pb2.Param, turn: int) -> engine_pb2.ParamValue:
    """Return a legal parameter value: a choice, or the minimum, the middle and the maximum in rotation."""
    if param.choices:
        return param.choices[turn % len(param.choices)]
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=turn % 2 == 1)
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text="")
    number = param.minimum + (param.maximum - param.minimum) * (turn % 3) / 2
    return engine_pb2.ParamValue(
        number=number // 1 if param.type == engine_pb2.PARAM_TYPE_INTEGER else number,
    )


class RandomPlayer:
    """Random player: takes an action, writes free text, or waits.

    Args:
        seed: determines all choices.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a game, no secret

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput:  # noqa: ARG002 - the port's
        """Return a random choice."""
        drawn = self._random.random()
        if not legal or drawn < _WAIT_SHARE:
            return TurnInput()
        action = self._random.choice(legal)
        if drawn < _WAIT_SHARE + _SPEAK_SHARE:
            return TurnInput(words=f"{action.name}. {action.description}".strip())
        params = {param.name: self._random_value(param) for param in action.params}
        return TurnInput([engine_pb2.ActionCall(action_id=action.action_id, params=params)])

    def _random_value(self, param: engine_pb2.Param) -> engine_pb2.ParamValue:
        if param.choices:
            return self._random.choice(param.choices)
        if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
            return engine_pb2.ParamValue(flag=self._random.random() < 0.5)  # noqa: PLR2004 - as likely as not
        if param.type == engine_pb2.PARAM_TYPE_STRING:
            return engine_pb2.ParamValue(text="")
        number = self._random.uniform(param.minimum, param.maximum)
        is_whole = param.type == engine_pb2.PARAM_TYPE_INTEGER
        return engine_pb2.ParamValue(number=float(round(number)) if is_whole else number)


class HumanPlayer:
    """Interactive player at the terminal."""

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> TurnInput | None:  # noqa: ARG002 - the port's
        """Show the legal actions, and read a number or free text."""
        numbered = {str(number): action for number, action in enumerate(legal, start=1)}
        for number, action in numbered.items():
            about = f" - {action.description}" if action.description else ""
            result_console().print(f"  {number}  {printable(action.name)}{printable(about)}", style="cyan")
        answer = _prompt_choice(numbered)
        if answer in numbered:
            return _prompt_params(numbered[answer])
        if answer is not None and answer.startswith(_ASK):
            return TurnInput(question=answer.removeprefix(_ASK).strip())
        return None if answer is None else TurnInput(words=answer)


def _prompt_choice(numbered: Collection[str]) -> str | None:
    """Prompt until the input is a listed number, free text or empty; return None to stop."""
    while (answer := prompt_line(_QUESTION)) is not None and answer not in _STOP:
        if answer in _EXPLAIN:
            result_console().print("\n".join(f"  {line}" for line in _HELP))
        elif answer.isdecimal() and answer not in numbered:
            result_console().print("  unknown number")
        else:
            return answer
    return None


def _prompt_params(action: engine_pb2.LegalAction) -> TurnInput | None:
    call = engine_pb2.ActionCall(action_id=action.action_id)
    for param in action.params:
        value = _prompt_value(param)
        if value is None:
            return None
        call.params[param.name].CopyFrom(value)
    return TurnInput([call])


def _prompt_value(param: engine_pb2.Param) -> engine_pb2.ParamValue | None:
    """Prompt until the value has the right type. The engine checks whether it is legal."""
    while (answer := prompt_line(f"{printable(param.name)} ({_describe_domain(param)}) > ")) is not None:
        try:
            return _parse_value(param.type, answer)
        except ValueError:
            result_console().print("  invalid value")
    return None


def _parse_value(kind: engine_pb2.ParamType.ValueType, answer: str) -> engine_pb2.ParamValue:
    if kind == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text=answer)
    if kind == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=bool(["no", "yes"].index(answer.lower())))
    return engine_pb2.ParamValue(
        number=int(answer) if kind == engine_pb2.PARAM_TYPE_INTEGER else float(answer),
    )


def _describe_domain(param: engine_pb2.Param) -> str:
    if param.choices:
        return ", ".join(printable(str(_plain_value(choice))) for choice in param.choices)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return "yes or no"
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return f"at most {param.max_length} characters" if param.HasField("max_length") else "text"
    return f"{param.minimum:g} to {param.maximum:g}"


def _plain_value(value: engine_pb2.ParamValue) -> object:
    return getattr(value, value.WhichOneof("kind") or "text")


def prompt_line(question: str) -> str | None:
    """Read a line from the terminal; None at the end of input.

    Ctrl-C ends the process at once, also inside an event loop.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _read_line(question).strip()
    except EOFError:
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _read_line(question: str) -> str:
    """Read a line of standard input.

    `input` notices a signal between its question and its blocking read only with the next line. So a terminal
    is awaited with `select`, which any signal wakes through a socket.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        return input(question)
    woken, waking = socket.socketpair()
    with woken, waking:
        waking.setblocking(False)
        before = signal.set_wakeup_fd(waking.fileno())
        try:
            sys.stdout.write(question)
            sys.stdout.flush()
            select.select([sys.stdin, woken], [], [])
        finally:
            signal.set_wakeup_fd(before)
    return input()


_MAX_LISTED = 8


@dataclass(frozen=True)
class PointOfView:
    """An entity as point of view.

    Attributes:
        entity_id: its id; empty for the public view.
        name: its name.
        description: its description in the scenario, including how it wins and loses.
    """

    entity_id: str
    name: str
    description: str


PUBLIC_VIEW = PointOfView("", "the public view", "")


def select_point_of_view(spec: bytes, wanted: str | None) -> PointOfView:
    """Return the wanted point of view, or the only playable entity; the public view if that is ambiguous.

    Raises:
        InvalidArgumentError: the wanted entity is not playable.
    """
    entities = json.loads(spec).get("entities", [])
    playable = {entity["id"]: _to_point_of_view(entity) for entity in entities if entity.get("playable")}
    if wanted is None:
        return next(iter(playable.values())) if len(playable) == 1 else PUBLIC_VIEW
    if wanted not in playable:
        choices = ", ".join(list(playable)[:_MAX_LISTED])
        remedy = f"use one of {choices}" if choices else "the scenario has none; leave it out"
        reason = f"is not a playable entity: {remedy}"
        raise InvalidArgumentError(
            f"point of view '{wanted[:64]}' {reason}",
            code="UNKNOWN_ENTITY",
            violations=[FieldViolation("--pov", reason)],
        )
    return playable[wanted]


def _to_point_of_view(entity: Mapping[str, Any]) -> PointOfView:
    return PointOfView(entity["id"], entity.get("name", entity["id"]), entity.get("description", ""))
