"""An answer put together from the pieces in which it arrives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import jiter

from peripety.gateway.model import (
    ProviderState,
    Reasoning,
    ReasoningDelta,
    SchemaMethod,
    StopReason,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from peripety.gateway.providers.fields import malformed
from peripety.gateway.providers.schemas import ANSWER_TOOL

if TYPE_CHECKING:
    from peripety.gateway.model import Part
    from peripety.gateway.providers.base import Delta

__all__ = ["Assembly", "GrowingCall"]


@dataclass(slots=True)
class _Growing:
    kind: type[Text | Reasoning]
    pieces: list[str]


@dataclass(slots=True)
class GrowingCall:
    """A tool call whose arguments are still being written."""

    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    told: bool = False


_BY_ITSELF = frozenset({StopReason.END, StopReason.TOOL_USE})

_Piece: TypeAlias = _Growing | GrowingCall | ProviderState


class Assembly:
    """Collects the parts of one answer in their order, and gives out the delta of each piece.

    Args:
        method: how the answer is brought to match its schema, when it has one: with a tool for that, the
            arguments of its call are the text of the answer.
    """

    def __init__(self, method: SchemaMethod | None = None) -> None:
        self._pieces: list[_Piece] = []
        self._answer_tool = ANSWER_TOOL if method is SchemaMethod.TOOL else None

    def add_text(self, text: str) -> list[Delta]:
        """Take the next piece of text."""
        return [TextDelta(text)] if self._add(Text, text) else []

    def add_reasoning(self, text: str) -> list[Delta]:
        """Take the next piece of reasoning."""
        return [ReasoningDelta(text)] if self._add(Reasoning, text) else []

    def open_call(self, call_id: str, name: str) -> GrowingCall:
        """Begin a tool call; several may grow at once, and keep the order in which they began.

        Raises:
            UnavailableError: it names no tool, or there is a call with this id already: their results could
                not be told apart.
        """
        if not name:
            raise malformed("a tool call names no tool")
        if any(isinstance(piece, GrowingCall) and piece.call_id == call_id for piece in self._pieces):
            raise malformed(f"two calls have the id '{call_id}'")
        call = GrowingCall(call_id, name)
        if name != self._answer_tool:
            self._pieces.append(call)
        return call

    def add_arguments(self, call: GrowingCall, text: str) -> list[Delta]:
        """Take the next piece of a call's arguments; the first delta of a call names its tool."""
        if call.name == self._answer_tool:
            return self.add_text(text)
        if not text and call.told:
            return []
        call.pieces.append(text)
        name, call.told = ("" if call.told else call.name), True
        return [ToolCallDelta(call.call_id, text, name)]

    def add_state(self, state: ProviderState) -> None:
        """Take what the provider wants back unchanged, at this place of the answer."""
        self._pieces.append(state)

    def end(self, reason: StopReason) -> tuple[tuple[Part, ...], StopReason]:
        """Return the answer, now that it is whole, and why the model stopped.

        Of an answer that did not end by itself, but at a limit or by a filter, calls that are not whole are
        left out, since nobody could make them.

        Args:
            reason: why it stopped, as the provider tells it; some call it an end when tools are called.

        Raises:
            UnavailableError: the arguments of a tool call are no JSON object.
        """
        whole = reason in _BY_ITSELF
        parts = tuple(_part(piece) for piece in self._pieces if whole or not _is_cut(piece))
        if whole:
            calls = any(isinstance(part, ToolCall) for part in parts)
            broken = reason is StopReason.TOOL_USE and self._answer_tool is None
            reason = StopReason.TOOL_USE if calls else StopReason.OTHER if broken else StopReason.END
        return parts, reason

    def _add(self, kind: type[Text | Reasoning], text: str) -> bool:
        if not text:
            return False
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, _Growing) and last.kind is kind:
            last.pieces.append(text)
        else:
            self._pieces.append(_Growing(kind, [text]))
        return True


def _is_cut(piece: _Piece) -> bool:
    """Whether it is a call that was not written to its end; one without arguments may not have begun."""
    return isinstance(piece, GrowingCall) and not ("".join(piece.pieces).strip() and _arguments(piece))


def _part(piece: _Piece) -> Part:
    match piece:
        case ProviderState():
            return piece
        case GrowingCall():
            arguments = _arguments(piece)
            if arguments is None:
                raise malformed(f"the arguments of a call of '{piece.name}' are no JSON object")
            return ToolCall(piece.call_id, piece.name, arguments)
        case _:
            return piece.kind("".join(piece.pieces))


def _arguments(call: GrowingCall) -> str | None:
    """The arguments of a call; None when they are no JSON object."""
    text = "".join(call.pieces).strip() or "{}"
    try:
        value: Any = jiter.from_json(text.encode(), allow_inf_nan=False)
    except ValueError:
        value = None
    return text if isinstance(value, dict) else None
