"""Response stream of OpenAI's Responses API, without storage on the server, and its wire protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.message_normalization import ToolNames
from peripety.gateway.providers.completion_builder import (
    CompletionBuilder,
    get_count,
    get_object,
    get_text,
    malformed_stream_error,
    parse_object,
    truncated_stream_error,
)
from peripety.gateway.providers.history_compat import CallIdGenerator
from peripety.gateway.providers.openai.dialect import VOCABULARY
from peripety.gateway.providers.openai_responses.request_body import (
    to_counting_body,
    to_responses_body,
    wrap_phase,
    wrap_reasoning,
)
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.providers.wire_protocol import TokenCountRequest
from peripety.gateway.types.response import StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.completion_builder import PartialToolCall
    from peripety.gateway.providers.error_mapping import ErrorMapper
    from peripety.gateway.providers.provider import Delta, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody
    from peripety.gateway.types.response import SchemaMethod


_INCOMPLETE = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSAL}


class ResponseStream:
    """State of one answer.

    Events of unknown types are ignored. Redundant data must agree: the pieces of a text with the final text,
    and the sequence numbers with the order of events.

    Args:
        error_mapper: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(self, error_mapper: ErrorMapper, call: ProviderCall, method: SchemaMethod | None) -> None:
        self._error_mapper = error_mapper
        self._call = call
        self._model = call.model
        self._builder = CompletionBuilder(method)
        self._names = ToolNames.from_request(call.request)
        self._ids = CallIdGenerator(call.request.messages)
        self._calls: dict[int, PartialToolCall] = {}
        self._received_texts: dict[tuple[int, int], list[str]] = {}
        self._number = -1
        self._stop_reason: StopReason | None = None
        self._refusal_texts = False
        self._usage = Usage()
        self._readers: dict[str, Callable[[Mapping[str, Any]], Sequence[Delta]]] = {
            "response.output_item.added": self._open,
            "response.output_text.delta": self._read_text,
            "response.output_text.done": lambda event: self._builder.add_text(
                self._missing_text(event, "text"),
            ),
            "response.refusal.delta": self._read_refusal,
            "response.refusal.done": lambda event: self._builder.add_text(
                self._missing_text(event, "refusal"),
            ),
            "response.function_call_arguments.delta": self._read_arguments,
            "response.function_call_arguments.done": self._end_arguments,
            "response.reasoning_summary_part.added": self._separate_summaries,
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
        reader = self._readers.get(get_text(event.get("type")))
        return () if reader is None else reader(event)

    def finish(self) -> AnswerFinished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated_stream_error("before the response did")
        parts, reason = self._builder.finish(self._stop_reason)
        return AnswerFinished(parts, reason, self._usage, self._model)

    def _require_order(self, event: Mapping[str, Any]) -> None:
        number = event.get("sequence_number")
        if isinstance(number, int):
            if number <= self._number:
                raise malformed_stream_error("an event comes twice, or out of order")
            self._number = number

    def _open(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        item = get_object(event.get("item"))
        if item.get("type") == "function_call":
            name = self._names.from_wire(get_text(item.get("name")))
            call_id = self._ids.make_unique(get_text(item.get("call_id")))
            self._calls[_index(event, "output_index")] = self._builder.open_call(call_id, name)
        elif item.get("type") == "message" and (phase := wrap_phase(self._call, item)):
            self._builder.add_state(phase)
        return ()

    def _read_text(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._builder.add_text(self._read_piece(event))

    def _read_refusal(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        self._refusal_texts = True
        return self._builder.add_text(self._read_piece(event))

    def _read_arguments(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._builder.add_arguments(self._call_of(event), self._read_piece(event))

    def _end_arguments(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._builder.add_arguments(self._call_of(event), self._missing_text(event, "arguments"))

    def _call_of(self, event: Mapping[str, Any]) -> PartialToolCall:
        call = self._calls.get(_index(event, "output_index"))
        if call is None:
            raise malformed_stream_error("a piece of a tool call belongs to none")
        return call

    def _separate_summaries(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._builder.add_reasoning("\n\n" if event.get("summary_index") else "")

    def _read_reasoning(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        return self._builder.add_reasoning(get_text(event.get("delta")))

    def _close(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        item = get_object(event.get("item"))
        if item.get("type") == "reasoning" and (thought := wrap_reasoning(self._call, item)):
            self._builder.add_state(thought)
        return ()

    def _read_piece(self, event: Mapping[str, Any]) -> str:
        piece = get_text(event.get("delta"))
        self._received_texts.setdefault(_item_position(event), []).append(piece)
        return piece

    def _missing_text(self, event: Mapping[str, Any], field: str) -> str:
        """Return the part of a text that its pieces did not contain: all of it or nothing."""
        whole, received = (
            get_text(event.get(field)),
            "".join(self._received_texts.get(_item_position(event), ())),
        )
        if received and received != whole:
            raise malformed_stream_error("the pieces of a text are not the text")
        return "" if received else whole

    def _end(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        response = get_object(event.get("response"))
        self._model = get_text(response.get("model")) or self._model
        self._usage = _to_usage(get_object(response.get("usage")))
        reason = get_text(get_object(response.get("incomplete_details")).get("reason"))
        ended = StopReason.REFUSAL if self._refusal_texts else StopReason.END
        whole = event.get("type") == "response.completed"
        self._stop_reason = ended if whole else _INCOMPLETE.get(reason, StopReason.OTHER)
        return ()

    def _fail(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        # An `error` event has the fields at its top level or in an object; a failed response has them in an
        # object.
        failed = get_object(event.get("response")).get("error")
        raise self._error_mapper.from_stream(failed or event.get("error") or event)


def _item_position(event: Mapping[str, Any]) -> tuple[int, int]:
    return _index(event, "output_index"), _index(event, "content_index")


def _index(event: Mapping[str, Any], field: str) -> int:
    index = event.get(field, 0)
    if not isinstance(index, int):
        raise malformed_stream_error(f"{field} is not a number")
    return index


def _to_usage(usage: Mapping[str, Any]) -> Usage:
    read = get_object(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=get_count(usage.get("input_tokens")),
        output_tokens=get_count(usage.get("output_tokens")),
        cache_read_tokens=get_count(read.get("cached_tokens")),
        cache_write_tokens=get_count(read.get("cache_write_tokens")),
        reasoning_tokens=get_count(get_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
        long_cache_write_tokens=get_count(
            get_object(read.get("cache_write_tokens_details")).get("ttl_12h_tokens"),
        ),
    )


class ResponsesWire:
    """Implements `Wire`."""

    framing = StreamFraming.EVENTS
    vocabulary = VOCABULARY

    def path(self, _call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL."""
        return "/responses"

    def headers(self, _call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call.

        Raises:
            InvalidArgumentError: the API does not support the request.
        """
        return to_responses_body(call)

    def answer(self, call: ProviderCall, body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        return ResponseStream(error_mapper, call, body.schema_method)

    def token_count_request(self, call: ProviderCall) -> TokenCountRequest:
        """Return the token-count request for a call.

        Raises:
            InvalidArgumentError: the API does not support the request.
        """
        return TokenCountRequest("/responses/input_tokens", to_counting_body(call), "input_tokens")
