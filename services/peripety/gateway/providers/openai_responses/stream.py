"""Decoder of the event stream of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import StopReason, Usage
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.earlier_turns import CallIds
from peripety.gateway.providers.fields import (
    count_in,
    malformed,
    object_in,
    parse_object,
    text_in,
    truncated,
)
from peripety.gateway.providers.openai_responses.kept import keep_phase, keep_thought
from peripety.gateway.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.gateway.model import SchemaMethod
    from peripety.gateway.providers.assembling import GrowingCall
    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.failures import Failures

__all__ = ["ResponseStream"]

_INCOMPLETE = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSAL}


class ResponseStream:
    """State of one answer.

    Events of unknown types are ignored. Redundant data must agree: the pieces of a text with the final text,
    and the sequence numbers with the order of events.

    Args:
        failures: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(self, failures: Failures, call: Call, method: SchemaMethod | None) -> None:
        self._failures = failures
        self._call = call
        self._model = call.model
        self._assembly = Assembly(method)
        self._names = ToolNames.of(call.request)
        self._ids = CallIds(call.request.messages)
        self._calls: dict[int, GrowingCall] = {}
        self._received: dict[tuple[int, int], list[str]] = {}
        self._number = -1
        self._stop_reason: StopReason | None = None
        self._refused = False
        self._usage = Usage()
        self._readers: dict[str, Callable[[Mapping[str, Any]], Sequence[Delta]]] = {
            "response.output_item.added": self._open,
            "response.output_text.delta": self._read_text,
            "response.output_text.done": lambda event: self._assembly.add_text(self._rest(event, "text")),
            "response.refusal.delta": self._read_refusal,
            "response.refusal.done": lambda event: self._assembly.add_text(self._rest(event, "refusal")),
            "response.function_call_arguments.delta": self._read_arguments,
            "response.function_call_arguments.done": self._end_arguments,
            "response.reasoning_summary_part.added": self._part_summary,
            "response.reasoning_summary_text.delta": self._read_reasoning,
            "response.reasoning_text.delta": self._read_reasoning,
            "response.output_item.done": self._close,
            "response.completed": self._end,
            "response.incomplete": self._end,
            "response.failed": self._fail,
            "error": self._fail,
        }

    @property
    def done(self) -> bool:
        """Return True if the response has ended."""
        return self._stop_reason is not None

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived: its usage comes with its end."""
        return self.done

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is invalid.
        """
        if self.done:
            return ()
        event = parse_object(data)
        self._require_order(event)
        reader = self._readers.get(text_in(event.get("type")))
        return () if reader is None else reader(event)

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated("before the response did")
        parts, reason = self._assembly.end(self._stop_reason)
        return Finished(parts, reason, self._usage, self._model)

    def _require_order(self, event: Mapping[str, Any]) -> None:
        number = event.get("sequence_number")
        if isinstance(number, int):
            if number <= self._number:
                raise malformed("an event comes twice, or out of order")
            self._number = number

    def _open(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        item = object_in(event.get("item"))
        if item.get("type") == "function_call":
            name = self._names.from_wire(text_in(item.get("name")))
            call_id = self._ids.unlike(text_in(item.get("call_id")))
            self._calls[_index(event, "output_index")] = self._assembly.open_call(call_id, name)
        elif item.get("type") == "message" and (phase := keep_phase(self._call, item)):
            self._assembly.add_state(phase)
        return ()

    def _read_text(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_text(self._piece(event))

    def _read_refusal(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        self._refused = True
        return self._assembly.add_text(self._piece(event))

    def _read_arguments(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_arguments(self._call_of(event), self._piece(event))

    def _end_arguments(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_arguments(self._call_of(event), self._rest(event, "arguments"))

    def _call_of(self, event: Mapping[str, Any]) -> GrowingCall:
        call = self._calls.get(_index(event, "output_index"))
        if call is None:
            raise malformed("a piece of a tool call belongs to none")
        return call

    def _part_summary(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_reasoning("\n\n" if event.get("summary_index") else "")

    def _read_reasoning(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_reasoning(text_in(event.get("delta")))

    def _close(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        item = object_in(event.get("item"))
        if item.get("type") == "reasoning" and (thought := keep_thought(self._call, item)):
            self._assembly.add_state(thought)
        return ()

    def _piece(self, event: Mapping[str, Any]) -> str:
        piece = text_in(event.get("delta"))
        self._received.setdefault(_place(event), []).append(piece)
        return piece

    def _rest(self, event: Mapping[str, Any], field: str) -> str:
        """Return the part of a text that its pieces did not contain: all of it or nothing."""
        whole, received = text_in(event.get(field)), "".join(self._received.get(_place(event), ()))
        if received and received != whole:
            raise malformed("the pieces of a text are not the text")
        return "" if received else whole

    def _end(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        response = object_in(event.get("response"))
        self._model = text_in(response.get("model")) or self._model
        self._usage = _counted(object_in(response.get("usage")))
        reason = text_in(object_in(response.get("incomplete_details")).get("reason"))
        ended = StopReason.REFUSAL if self._refused else StopReason.END
        whole = event.get("type") == "response.completed"
        self._stop_reason = ended if whole else _INCOMPLETE.get(reason, StopReason.OTHER)
        return ()

    def _fail(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        # An `error` event has the fields at its top level or in an object; a failed response has them in an
        # object.
        failed = object_in(event.get("response")).get("error")
        raise self._failures.in_stream(failed or event.get("error") or event)


def _place(event: Mapping[str, Any]) -> tuple[int, int]:
    return _index(event, "output_index"), _index(event, "content_index")


def _index(event: Mapping[str, Any], field: str) -> int:
    index = event.get(field, 0)
    if not isinstance(index, int):
        raise malformed(f"{field} is not a number")
    return index


def _counted(usage: Mapping[str, Any]) -> Usage:
    read = object_in(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=count_in(usage.get("input_tokens")),
        output_tokens=count_in(usage.get("output_tokens")),
        cache_read_tokens=count_in(read.get("cached_tokens")),
        cache_write_tokens=count_in(read.get("cache_write_tokens")),
        reasoning_tokens=count_in(object_in(usage.get("output_tokens_details")).get("reasoning_tokens")),
        long_cache_write_tokens=count_in(
            object_in(read.get("cache_write_tokens_details")).get("ttl_12h_tokens")
        ),
    )
