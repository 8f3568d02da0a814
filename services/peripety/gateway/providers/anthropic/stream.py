"""Decoder of the event stream of a Messages answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import StopReason
from peripety.gateway.providers.anthropic.blocks import open_block
from peripety.gateway.providers.anthropic.usage import Counts
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.earlier_turns import CallIds
from peripety.gateway.providers.fields import malformed, object_in, parse_object, text_in, truncated
from peripety.gateway.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.model import SchemaMethod
    from peripety.gateway.providers.anthropic.blocks import OpenBlock
    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.failures import Failures

__all__ = ["MessageStream"]

_STOP_REASONS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "refusal": StopReason.REFUSAL,
}


class MessageStream:
    """State of one answer.

    Events and blocks of unknown types are ignored. A known one in the wrong place or of the wrong type is an
    error, and so is an unannounced end.

    Args:
        failures: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(self, failures: Failures, call: Call, method: SchemaMethod | None) -> None:
        self._failures = failures
        self._call = call
        self._model = call.model
        self._names = ToolNames.of(call.request)
        self._assembly = Assembly(method)
        self._counts = Counts()
        self._begun = False
        self._ids = CallIds(call.request.messages)
        self._blocks = 0
        self._open: OpenBlock | None = None
        self._stop_reason: StopReason | None = None
        self.done = False

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived; only the end marker may follow."""
        return self._stop_reason is not None

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is invalid.
        """
        if self.done:
            return ()
        event = parse_object(data)
        kind = text_in(event.get("type"))
        match kind:
            case "error":
                raise self._failures.in_stream(event.get("error"))
            case "message_start":
                self._start(object_in(event.get("message")))
            case "message_delta" | "message_stop":
                return self._end(kind, event)
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._read_block(kind, event)
        return ()

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated("without a stop_reason")
        parts, reason = self._assembly.end(self._stop_reason)
        return Finished(parts, reason, self._counts.usage(), self._model)

    def _start(self, message: Mapping[str, Any]) -> None:
        if self._begun:
            raise malformed("message_start comes twice")
        self._begun = True
        self._model = text_in(message.get("model")) or self._model
        self._counts.update(object_in(message.get("usage")))

    def _read_block(self, kind: str, event: Mapping[str, Any]) -> Sequence[Delta]:
        if kind == "content_block_start":
            return self._open_block(event)
        if self._open is None or event.get("index") != self._blocks - 1:
            raise malformed("a piece belongs to no open block")
        if kind == "content_block_delta":
            return self._open.feed(object_in(event.get("delta")))
        self._open.close()
        self._open = None
        return ()

    def _open_block(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        in_turn = self._begun and not self.complete and self._open is None
        if not in_turn or event.get("index") != self._blocks:
            raise malformed("a block begins out of turn")
        self._blocks += 1
        block = object_in(event.get("content_block"))
        self._open, deltas = open_block(block, self._assembly, self._names, self._ids, self._call)
        return deltas

    def _end(self, kind: str, event: Mapping[str, Any]) -> Sequence[Delta]:
        if not self._begun or self._open is not None:
            raise malformed(f"{kind} comes before the answer has begun, or inside of a block")
        self._counts.update(object_in(event.get("usage")))
        delta = object_in(event.get("delta"))
        reason = delta.get("stop_reason")
        if reason is not None:
            self._stop_reason = _STOP_REASONS.get(text_in(reason), StopReason.OTHER)
        if kind == "message_stop":
            if not self.complete:
                raise malformed("message_stop comes without a stop_reason")
            self.done = True
        # The reason for declining is outside the content; it becomes the answer if the content is empty.
        why = text_in(object_in(delta.get("stop_details")).get("explanation"))
        return () if self._blocks else self._assembly.add_text(why)
