"""Builder of a completion from streamed deltas."""

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
    """A tool call whose arguments are incomplete."""

    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    told: bool = False


_BY_ITSELF = frozenset({StopReason.END, StopReason.TOOL_USE})

_Piece: TypeAlias = _Growing | GrowingCall | ProviderState


class Assembly:
    """Builder of one answer: collects its parts in order, and returns the delta of each piece.

    Args:
        method: how the answer is made to match its schema, if it has one. With an answer tool, the arguments
            of its call become the text of the answer.
    """

    def __init__(self, method: SchemaMethod | None = None) -> None:
        self._pieces: list[_Piece] = []
        self._answer_tool = ANSWER_TOOL if method is SchemaMethod.TOOL else None

    def add_text(self, text: str) -> list[Delta]:
        """Append a piece of text."""
        return [TextDelta(text)] if self._add(Text, text) else []

    def add_reasoning(self, text: str) -> list[Delta]:
        """Append a piece of reasoning."""
        return [ReasoningDelta(text)] if self._add(Reasoning, text) else []

    def open_call(self, call_id: str, name: str) -> GrowingCall:
        """Start a tool call; several may be open at once, and retain the order of their start.

        Raises:
            UnavailableError: it has no tool name, or its id is already in use, so its result would be
                ambiguous.
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
        """Append a piece of a call's arguments; the first delta of a call names its tool."""
        if call.name == self._answer_tool:
            return self.add_text(text)
        if not text and call.told:
            return []
        call.pieces.append(text)
        name, call.told = ("" if call.told else call.name), True
        return [ToolCallDelta(call.call_id, text, name)]

    def add_state(self, state: ProviderState) -> None:
        """Append opaque provider data at this position."""
        self._pieces.append(state)

    def end(self, reason: StopReason) -> tuple[tuple[Part, ...], StopReason]:
        """Return the parts of the complete answer, and why the model stopped.

        If the answer ended at a limit or by a filter, incomplete tool calls are removed, because they cannot
        be executed.

        Args:
            reason: the provider's reason; some report a normal end when tools are called.

        Raises:
            UnavailableError: the arguments of a tool call are not a JSON object.
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
    """Return True for an incomplete tool call; one without arguments may not have started."""
    return isinstance(piece, GrowingCall) and not ("".join(piece.pieces).strip() and _arguments(piece))


def _part(piece: _Piece) -> Part:
    match piece:
        case ProviderState():
            return piece
        case GrowingCall():
            arguments = _arguments(piece)
            if arguments is None:
                raise malformed(f"the arguments of a call of '{piece.name}' are not a JSON object")
            return ToolCall(piece.call_id, piece.name, arguments)
        case _:
            return piece.kind("".join(piece.pieces))


def _arguments(call: GrowingCall) -> str | None:
    """Return the arguments of a call; None if they are not a JSON object."""
    text = "".join(call.pieces).strip() or "{}"
    try:
        value: Any = jiter.from_json(text.encode(), allow_inf_nan=False)
    except ValueError:
        value = None
    return text if isinstance(value, dict) else None
