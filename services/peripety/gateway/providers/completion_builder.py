"""Completion builder: a completion from streamed deltas, with typed access to JSON fields.

A known field of the wrong type is an error; unknown fields are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import jiter

from peripety.errors import UnavailableError
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import ProviderState, Reasoning, Text, ToolCall
from peripety.gateway.types.response import ReasoningDelta, SchemaMethod, StopReason, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.providers.provider import Delta
    from peripety.gateway.types.message import Part


_MAX_COUNT = 10**12
"""Upper bound of a count: more than any call reports, and sums still fit into 64-bit integers."""


def parse_object(data: str) -> Mapping[str, Any]:
    """Parse an event's data, which must be a JSON object.

    Raises:
        UnavailableError: it is not (code STREAM_MALFORMED), as in all functions of this module.
    """
    try:
        return get_object(jiter.from_json(data.encode()))
    except ValueError:
        raise malformed_stream_error("an event is not JSON") from None


def get_object(value: Any) -> Mapping[str, Any]:
    """Return the object in a field; an empty one if the field is absent."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed_stream_error("an object is missing where one belongs")
    return value


def get_list(value: Any) -> list[Any]:
    """Return the list in a field; an empty one if the field is absent."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise malformed_stream_error("a list is missing where one belongs")
    return value


def get_text(value: Any) -> str:
    """Return the text in a field; an empty one if the field is absent."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise malformed_stream_error("a text is missing where one belongs")
    return value


def get_count(value: Any) -> int:
    """Return the count in a field.

    0 if it is absent or invalid, because usage figures must not fail an answer.
    """
    return value if isinstance(value, int) and 0 < value <= _MAX_COUNT else 0


def malformed_stream_error(problem: str) -> UnavailableError:
    """Return the error of a malformed stream."""
    return UnavailableError(f"malformed response stream: {problem}", code="STREAM_MALFORMED")


def truncated_stream_error(missing: str) -> UnavailableError:
    """Return the error of a truncated stream."""
    return UnavailableError(
        f"answer truncated: the stream ended {missing}; try again",
        code="STREAM_TRUNCATED",
    )


@dataclass(slots=True)
class _PartialText:
    kind: type[Text | Reasoning]
    pieces: list[str]


@dataclass(slots=True)
class PartialToolCall:
    """A tool call whose arguments are incomplete."""

    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    is_announced: bool = False


_NATURAL_ENDS = frozenset({StopReason.END, StopReason.TOOL_USE})

_Piece: TypeAlias = _PartialText | PartialToolCall | ProviderState


class CompletionBuilder:
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

    def open_call(self, call_id: str, name: str) -> PartialToolCall:
        """Start a tool call; several may be open at once, and retain the order of their start.

        Raises:
            UnavailableError: it has no tool name, or its id is already in use, so its result would be
                ambiguous.
        """
        if not name:
            raise malformed_stream_error("a tool call names no tool")
        if any(isinstance(piece, PartialToolCall) and piece.call_id == call_id for piece in self._pieces):
            raise malformed_stream_error(f"two calls have the id '{call_id}'")
        call = PartialToolCall(call_id, name)
        if name != self._answer_tool:
            self._pieces.append(call)
        return call

    def add_arguments(self, call: PartialToolCall, text: str) -> list[Delta]:
        """Append a piece of a call's arguments; the first delta of a call names its tool."""
        if call.name == self._answer_tool:
            return self.add_text(text)
        if not text and call.is_announced:
            return []
        call.pieces.append(text)
        name, call.is_announced = ("" if call.is_announced else call.name), True
        return [ToolCallDelta(call.call_id, text, name)]

    def add_state(self, state: ProviderState) -> None:
        """Append opaque provider data at this position."""
        self._pieces.append(state)

    def finish(self, reason: StopReason) -> tuple[tuple[Part, ...], StopReason]:
        """Return the parts of the complete answer, and why the model stopped.

        If the answer ended at a limit or by a filter, incomplete tool calls are removed, because they cannot
        be executed.

        Args:
            reason: the provider's reason; some report a normal end when tools are called.

        Raises:
            UnavailableError: the arguments of a tool call are not a JSON object.
        """
        whole = reason in _NATURAL_ENDS
        parts = tuple(_to_part(piece) for piece in self._pieces if whole or not _is_incomplete(piece))
        if whole:
            calls = any(isinstance(part, ToolCall) for part in parts)
            broken = reason is StopReason.TOOL_USE and self._answer_tool is None
            reason = StopReason.TOOL_USE if calls else StopReason.OTHER if broken else StopReason.END
        return parts, reason

    def _add(self, kind: type[Text | Reasoning], text: str) -> bool:
        if not text:
            return False
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, _PartialText) and last.kind is kind:
            last.pieces.append(text)
        else:
            self._pieces.append(_PartialText(kind, [text]))
        return True


def _is_incomplete(piece: _Piece) -> bool:
    """Return True for an incomplete tool call; one without arguments may not have started."""
    return isinstance(piece, PartialToolCall) and not (
        "".join(piece.pieces).strip() and _complete_arguments(piece)
    )


def _to_part(piece: _Piece) -> Part:
    match piece:
        case ProviderState():
            return piece
        case PartialToolCall():
            arguments = _complete_arguments(piece)
            if arguments is None:
                raise malformed_stream_error(
                    f"the arguments of a call of '{piece.name}' are not a JSON object",
                )
            return ToolCall(piece.call_id, piece.name, arguments)
        case _:
            return piece.kind("".join(piece.pieces))


def _complete_arguments(call: PartialToolCall) -> str | None:
    """Return the arguments of a call; None if they are not a JSON object."""
    text = "".join(call.pieces).strip() or "{}"
    try:
        value: Any = jiter.from_json(text.encode(), allow_inf_nan=False)
    except ValueError:
        value = None
    return text if isinstance(value, dict) else None
