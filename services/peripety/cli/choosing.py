"""Players of a game: automatic players, or the user at the terminal."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from peripety.api.common.v1 import engine_pb2
from peripety.cli.output import results
from peripety.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["Choice", "Person", "Player", "RoundRobin", "Wanderer", "ask"]

_QUESTION = "number, free text, Enter to wait, ? for help, q to stop > "
_WAITS, _SPEAKS = 0.1, 0.3
_STOP = {"q", "quit"}
_EXPLAIN = {"?", "help"}
_HELP = (
    "number   take that action; its parameters are requested next",
    "text     pass the text to the narrator; without an action",
    "Enter    wait: take no action in this turn",
    "?        show this",
    "q        stop; so does Ctrl-D",
)


@dataclass(frozen=True)
class Choice:
    """The input of a turn: actions, free text, or neither."""

    actions: list[engine_pb2.ActionCall] = field(default_factory=list)
    words: str = ""


class Player(Protocol):
    """A source of choices."""

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> Choice | None:
        """Return the choice for this turn; None to stop playing."""


class RoundRobin:
    """Automatic player that takes the legal actions one after another.

    Cycles parameters through their ranges.
    """

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> Choice:
        """Return the choice that the turn number determines."""
        if not legal:
            return Choice()
        action = legal[(turn - 1) % len(legal)]
        params = {param.name: _sample(param, turn) for param in action.params}
        return Choice([engine_pb2.ActionCall(action_id=action.action_id, params=params)])


def _sample(param: engine_pb2.Param, turn: int) -> engine_pb2.ParamValue:
    """Return a legal parameter value: a choice, or the minimum, the middle and the maximum in rotation."""
    if param.choices:
        return param.choices[turn % len(param.choices)]
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=turn % 2 == 1)
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text="")
    number = param.minimum + (param.maximum - param.minimum) * (turn % 3) / 2
    return engine_pb2.ParamValue(
        number=number // 1 if param.type == engine_pb2.PARAM_TYPE_INTEGER else number
    )


class Wanderer:
    """Random player: takes an action, writes free text, or waits.

    Args:
        seed: determines all choices.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a game, no secret

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> Choice:  # noqa: ARG002 - the port's
        """Return a random choice."""
        drawn = self._random.random()
        if not legal or drawn < _WAITS:
            return Choice()
        action = self._random.choice(legal)
        if drawn < _WAITS + _SPEAKS:
            return Choice(words=f"{action.name}. {action.description}".strip())
        params = {param.name: self._drawn(param) for param in action.params}
        return Choice([engine_pb2.ActionCall(action_id=action.action_id, params=params)])

    def _drawn(self, param: engine_pb2.Param) -> engine_pb2.ParamValue:
        if param.choices:
            return self._random.choice(param.choices)
        if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
            return engine_pb2.ParamValue(flag=self._random.random() < 0.5)  # noqa: PLR2004 - as likely as not
        if param.type == engine_pb2.PARAM_TYPE_STRING:
            return engine_pb2.ParamValue(text="")
        number = self._random.uniform(param.minimum, param.maximum)
        is_whole = param.type == engine_pb2.PARAM_TYPE_INTEGER
        return engine_pb2.ParamValue(number=float(round(number)) if is_whole else number)


class Person:
    """Interactive player at the terminal."""

    def choose(self, turn: int, legal: Sequence[engine_pb2.LegalAction]) -> Choice | None:  # noqa: ARG002 - the port's
        """Show the legal actions, and read a number or free text."""
        numbered = {str(number): action for number, action in enumerate(legal, start=1)}
        for number, action in numbered.items():
            about = f" - {action.description}" if action.description else ""
            results().print(f"  {number}  {printable(action.name)}{printable(about)}", style="cyan")
        answer = _ask_what_to_do(numbered)
        if answer in numbered:
            return _with_params(numbered[answer])
        return None if answer is None else Choice(words=answer)


def _ask_what_to_do(numbered: Collection[str]) -> str | None:
    """Prompt until the input is a listed number, free text or empty; return None to stop."""
    while (answer := ask(_QUESTION)) is not None and answer not in _STOP:
        if answer in _EXPLAIN:
            results().print("\n".join(f"  {line}" for line in _HELP))
        elif answer.isdecimal() and answer not in numbered:
            results().print("  unknown number")
        else:
            return answer
    return None


def _with_params(action: engine_pb2.LegalAction) -> Choice | None:
    call = engine_pb2.ActionCall(action_id=action.action_id)
    for param in action.params:
        value = _ask_value(param)
        if value is None:
            return None
        call.params[param.name].CopyFrom(value)
    return Choice([call])


def _ask_value(param: engine_pb2.Param) -> engine_pb2.ParamValue | None:
    """Prompt until the value has the right type. The engine checks whether it is legal."""
    while (answer := ask(f"{printable(param.name)} ({_domain(param)}) > ")) is not None:
        try:
            return _parse(param.type, answer)
        except ValueError:
            results().print("  invalid value")
    return None


def _parse(kind: engine_pb2.ParamType.ValueType, answer: str) -> engine_pb2.ParamValue:
    if kind == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text=answer)
    if kind == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=bool(["no", "yes"].index(answer.lower())))
    return engine_pb2.ParamValue(
        number=int(answer) if kind == engine_pb2.PARAM_TYPE_INTEGER else float(answer)
    )


def _domain(param: engine_pb2.Param) -> str:
    if param.choices:
        return ", ".join(printable(str(_plain(choice))) for choice in param.choices)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return "yes or no"
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return f"at most {param.max_length} characters" if param.HasField("max_length") else "text"
    return f"{param.minimum:g} to {param.maximum:g}"


def _plain(value: engine_pb2.ParamValue) -> object:
    return getattr(value, value.WhichOneof("kind") or "text")


def ask(question: str) -> str | None:
    """Read a line from the terminal; None at the end of input.

    Ctrl-C ends the process at once, also inside an event loop.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(question).strip()
    except EOFError:
        return None
    finally:
        signal.signal(signal.SIGINT, before)
