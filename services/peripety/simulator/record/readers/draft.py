"""Draft of a provider's answer while it is read: parts, stop reason, usage and chunk times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Reasoning, Refusal, Reply, Stop, Text, ToolUse, Usage

if TYPE_CHECKING:
    from peripety.simulator.model import Part

__all__ = ["Draft"]


class Draft:
    """The answer so far.

    Attributes:
        id: the id of the answer, without the prefix of the API.
        parts: the content.
        stop: the stop reason; None while the answer is in progress.
        stop_sequence: the matched stop sequence, if the API reports it.
        usage: the token usage, if the API reports it.
        ended: True if the end marker has arrived.
        error: the error that ended the answer, in the format of the API.
        now_ms: the time of the current bytes, in milliseconds after the request.
        times: the time of each content chunk.
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
        """Append prose."""
        if piece:
            self._say(Text((piece,)))

    def reasoning(self, piece: str | None) -> None:
        """Append reasoning."""
        if piece:
            self._say(Reasoning((piece,), ""))

    def refusal(self, piece: str | None) -> None:
        """Append to the refusal."""
        if piece:
            self._say(Refusal((piece,)))

    def call(self, name: str, call_id: str = "") -> None:
        """Start a tool call."""
        self._unknown = False
        self.parts.append(ToolUse(call_id, name, ()))

    def unknown(self) -> None:
        """Start a part that scripts cannot express; the arguments that follow belong to it."""
        self._unknown = True

    def arguments(self, piece: str | None, call: int = -1) -> None:
        """Append to the arguments of a tool call, by default the latest.

        Raises:
            ValueError: the call does not exist.
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
        """Return the answer as a reply."""
        stop = Stop.END if self.stop is None else self.stop
        usage = Usage() if self.usage is None else self.usage
        return Reply(self.id, 0, model, tuple(self.parts), stop, usage, self.stop_sequence)

    def ends_with(self, kind: type[Part]) -> bool:
        """Return True if the latest part is of a type."""
        return bool(self.parts) and isinstance(self.parts[-1], kind)

    def calls(self) -> bool:
        """Return True if the answer has a tool call."""
        return any(isinstance(part, ToolUse) for part in self.parts)

    def _say(self, part: Part) -> None:
        self.times.append(self.now_ms)
        last = self.parts[-1] if self.parts else None
        if type(last) is type(part):
            self.parts[-1] = replace(last, pieces=(*last.pieces, *part.pieces))
        else:
            self.parts.append(part)
