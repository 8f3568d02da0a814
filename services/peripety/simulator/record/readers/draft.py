"""An answer of a provider while it is read: its parts, why it ended, what it cost, when its chunks came."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Reasoning, Refusal, Reply, Stop, Text, ToolUse, Usage

if TYPE_CHECKING:
    from peripety.simulator.model import Part

__all__ = ["Draft"]


class Draft:
    """What was read so far.

    Attributes:
        id: the answer's id, without the API's own prefix.
        parts: what was said.
        stop: why it ended; None while it has not.
        stop_sequence: the text that ended it, if the API says so.
        usage: what it cost, if the API says so.
        ended: whether the mark of the end has come.
        error: the error that ended it, as the API writes it.
        now_ms: when what is being read came, in milliseconds after the request.
        times: when each chunk with content came.
    """

    def __init__(self) -> None:
        self.id = ""
        self.parts: list[Part] = []
        self.stop: Stop | None = None
        self.stop_sequence: str | None = None
        self.usage: Usage | None = None
        self.ended = False
        self.error: Any = None
        self.now_ms = 0.0
        self.times: list[float] = []
        self._unknown = False

    def text(self, piece: str | None) -> None:
        """Add prose."""
        if piece:
            self._say(Text((piece,)))

    def reasoning(self, piece: str | None) -> None:
        """Add a thought."""
        if piece:
            self._say(Reasoning((piece,), ""))

    def refusal(self, piece: str | None) -> None:
        """Add to the words in which the model declines."""
        if piece:
            self._say(Refusal((piece,)))

    def call(self, name: str, call_id: str = "") -> None:
        """Begin a tool call."""
        self._unknown = False
        self.parts.append(ToolUse(call_id, name, ()))

    def unknown(self) -> None:
        """Begin something that scenarios have no words for; arguments that follow are its own."""
        self._unknown = True

    def arguments(self, piece: str | None, call: int = -1) -> None:
        """Add to the arguments of a tool call, by default the latest.

        Raises:
            ValueError: there is no such call.
        """
        calls = [place for place, part in enumerate(self.parts) if isinstance(part, ToolUse)]
        if not piece or (self._unknown and call < 0):
            return
        if not -len(calls) <= call < len(calls):
            raise ValueError("tool call arguments arrived before their tool call")
        place = calls[call]
        self.parts[place] = replace(self.parts[place], pieces=(*self.parts[place].pieces, piece))
        self.times.append(self.now_ms)

    def reply(self, model: str) -> Reply:
        """What was read, as a whole."""
        stop = Stop.END if self.stop is None else self.stop
        usage = Usage() if self.usage is None else self.usage
        return Reply(self.id, 0, model, tuple(self.parts), stop, usage, self.stop_sequence)

    def ends_with(self, kind: type[Part]) -> bool:
        """Whether the latest part is of a kind."""
        return bool(self.parts) and isinstance(self.parts[-1], kind)

    def calls(self) -> bool:
        """Whether a tool is called."""
        return any(isinstance(part, ToolUse) for part in self.parts)

    def _say(self, part: Part) -> None:
        self.times.append(self.now_ms)
        last = self.parts[-1] if self.parts else None
        if type(last) is type(part):
            self.parts[-1] = replace(last, pieces=(*last.pieces, *part.pieces))
        else:
            self.parts.append(part)
