"""Anthropic response stream of a Messages call: block decoders, usage, and the wire protocol.

The content of an answer is a series of blocks, with one decoder per block type. Each usage event reports
totals, and the last one is final.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from peripety.gateway.message_normalization import ToolNames
from peripety.gateway.providers.anthropic.request_body import to_anthropic_body, to_counting_body
from peripety.gateway.providers.completion_builder import (
    CompletionBuilder,
    get_count,
    get_object,
    get_text,
    malformed_stream_error,
    parse_object,
    truncated_stream_error,
)
from peripety.gateway.providers.error_mapping import ErrorVocabulary
from peripety.gateway.providers.history_compat import CallIdGenerator, wrap_state
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.providers.wire_protocol import TokenCountRequest
from peripety.gateway.types.response import StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.completion_builder import PartialToolCall
    from peripety.gateway.providers.error_mapping import ErrorMapper
    from peripety.gateway.providers.provider import Delta, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody
    from peripety.gateway.types.response import SchemaMethod


class BlockDecoder(Protocol):
    """Decoder of a content block that has started."""

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        """Add the next delta; return the neutral deltas that result.

        Raises:
            UnavailableError: a block of this type has no such deltas.
        """
        ...

    def close(self) -> None:
        """End the block."""
        ...


def open_block(
    block: Mapping[str, Any],
    builder: CompletionBuilder,
    names: ToolNames,
    ids: CallIdGenerator,
    call: ProviderCall,
) -> tuple[BlockDecoder, Sequence[Delta]]:
    """Start a block.

    Args:
        block: its start event.
        builder: collects the answer.
        names: the offered tools.
        ids: the ids of earlier calls.
        call: the call that is answered.

    Returns:
        The decoder, and the deltas of the start event.
    """
    match get_text(block.get("type")):
        case "text":
            return _TextBlock(builder), builder.add_text(get_text(block.get("text")))
        case "tool_use":
            call_id, name = get_text(block.get("id")), get_text(block.get("name"))
            if not call_id or not name:
                raise malformed_stream_error("a tool call lacks its id or its name")
            tool_call = builder.open_call(ids.make_unique(call_id), names.from_wire(name))
            # Some compatible servers send all arguments at once.
            whole = get_object(block.get("input"))
            arguments = json.dumps(whole, ensure_ascii=False) if whole else ""
            return _CallBlock(builder, tool_call), builder.add_arguments(tool_call, arguments)
        case "thinking":
            return _ThinkingBlock(builder, call, block), ()
        case "redacted_thinking":
            builder.add_state(wrap_state(call, block))
            return _OtherBlock(), ()
        case _:
            return _OtherBlock(), ()


class _TextBlock:
    def __init__(self, assembly: CompletionBuilder) -> None:
        self._assembly = assembly

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        if delta.get("type") == "citations_delta":
            return ()
        return self._assembly.add_text(_required_text(delta, "text_delta", "text"))

    def close(self) -> None:
        """End the block; a text needs no action."""


class _CallBlock:
    def __init__(self, assembly: CompletionBuilder, call: PartialToolCall) -> None:
        self._assembly = assembly
        self._call = call

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        return self._assembly.add_arguments(
            self._call,
            _required_text(delta, "input_json_delta", "partial_json"),
        )

    def close(self) -> None:
        """End the block; its arguments are parsed with the whole answer."""


class _ThinkingBlock:
    def __init__(self, assembly: CompletionBuilder, call: ProviderCall, block: Mapping[str, Any]) -> None:
        self._assembly = assembly
        self._call = call
        self._block = block
        self._thinking = [get_text(block.get("thinking"))]
        self._signature = [get_text(block.get("signature"))]

    def feed(self, delta: Mapping[str, Any]) -> Sequence[Delta]:
        if delta.get("type") == "signature_delta":
            self._signature.append(_required_text(delta, "signature_delta", "signature"))
            return ()
        self._thinking.append(_required_text(delta, "thinking_delta", "thinking"))
        return self._assembly.add_reasoning(self._thinking[-1])

    def close(self) -> None:
        """Store the block unchanged for the next call.

        One without signature was truncated and would be rejected.
        """
        whole = {"thinking": "".join(self._thinking), "signature": "".join(self._signature)}
        if whole["signature"]:
            self._assembly.add_state(wrap_state(self._call, {**self._block, **whole}))


class _OtherBlock:
    """Decoder of a block without content for the user, or of unknown type."""

    def feed(self, _delta: Mapping[str, Any]) -> Sequence[Delta]:
        return ()

    def close(self) -> None:
        """End the block; it has no content to store."""


def _required_text(delta: Mapping[str, Any], kind: str, field: str) -> str:
    if delta.get("type") != kind:
        raise malformed_stream_error(f"{kind} is missing where one belongs")
    return get_text(delta.get(field))


class StreamUsage:
    """Token counts reported so far."""

    def __init__(self) -> None:
        self._reported: dict[str, Any] = {}

    def update(self, usage: Mapping[str, Any]) -> None:
        """Merge the `usage` of an event: its values replace earlier ones."""
        self._reported |= {name: value for name, value in usage.items() if value is not None}

    def usage(self) -> Usage:
        """Return the usage. The provider's input count covers only what follows the last cached block."""
        told = self._reported
        read = get_count(told.get("cache_read_input_tokens"))
        written = get_count(told.get("cache_creation_input_tokens"))
        by_ttl = get_object(told.get("cache_creation"))
        return Usage(
            input_tokens=get_count(told.get("input_tokens")) + read + written,
            output_tokens=get_count(told.get("output_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=get_count(get_object(told.get("output_tokens_details")).get("thinking_tokens")),
            long_cache_write_tokens=get_count(by_ttl.get("ephemeral_1h_input_tokens")),
        )


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
        error_mapper: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(self, error_mapper: ErrorMapper, call: ProviderCall, method: SchemaMethod | None) -> None:
        self._error_mapper = error_mapper
        self._call = call
        self._model = call.model
        self._names = ToolNames.from_request(call.request)
        self._builder = CompletionBuilder(method)
        self._usage = StreamUsage()
        self._has_started = False
        self._ids = CallIdGenerator(call.request.messages)
        self._blocks = 0
        self._open: BlockDecoder | None = None
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
        kind = get_text(event.get("type"))
        match kind:
            case "error":
                raise self._error_mapper.from_stream(event.get("error"))
            case "message_start":
                self._start(get_object(event.get("message")))
            case "message_delta" | "message_stop":
                return self._end(kind, event)
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._read_block(kind, event)
        return ()

    def finish(self) -> AnswerFinished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated_stream_error("without a stop_reason")
        parts, reason = self._builder.finish(self._stop_reason)
        return AnswerFinished(parts, reason, self._usage.usage(), self._model)

    def _start(self, message: Mapping[str, Any]) -> None:
        if self._has_started:
            raise malformed_stream_error("message_start comes twice")
        self._has_started = True
        self._model = get_text(message.get("model")) or self._model
        self._usage.update(get_object(message.get("usage")))

    def _read_block(self, kind: str, event: Mapping[str, Any]) -> Sequence[Delta]:
        if kind == "content_block_start":
            return self._open_block(event)
        if self._open is None or event.get("index") != self._blocks - 1:
            raise malformed_stream_error("a piece belongs to no open block")
        if kind == "content_block_delta":
            return self._open.feed(get_object(event.get("delta")))
        self._open.close()
        self._open = None
        return ()

    def _open_block(self, event: Mapping[str, Any]) -> Sequence[Delta]:
        in_turn = self._has_started and not self.complete and self._open is None
        if not in_turn or event.get("index") != self._blocks:
            raise malformed_stream_error("a block begins out of turn")
        self._blocks += 1
        block = get_object(event.get("content_block"))
        self._open, deltas = open_block(block, self._builder, self._names, self._ids, self._call)
        return deltas

    def _end(self, kind: str, event: Mapping[str, Any]) -> Sequence[Delta]:
        if not self._has_started or self._open is not None:
            raise malformed_stream_error(f"{kind} comes before the answer has begun, or inside of a block")
        self._usage.update(get_object(event.get("usage")))
        delta = get_object(event.get("delta"))
        reason = delta.get("stop_reason")
        if reason is not None:
            self._stop_reason = _STOP_REASONS.get(get_text(reason), StopReason.OTHER)
        if kind == "message_stop":
            if not self.complete:
                raise malformed_stream_error("message_stop comes without a stop_reason")
            self.done = True
        # The reason for declining is outside the content; it becomes the answer if the content is empty.
        why = get_text(get_object(delta.get("stop_details")).get("explanation"))
        return () if self._blocks else self._builder.add_text(why)


_PATH = "/v1/messages"


class MessagesWire:
    """Implements `Wire`."""

    framing = StreamFraming.EVENTS
    vocabulary = ErrorVocabulary(
        statuses={
            "invalid_request_error": 400,
            "authentication_error": 401,
            "billing_error": 402,
            "permission_error": 403,
            "not_found_error": 404,
            "conflict_error": 409,
            "request_too_large": 413,
            "rate_limit_error": 429,
            "api_error": 500,
            "timeout_error": 504,
            "overloaded_error": 529,
        },
        permanent_limits=frozenset({"enforced_spend_limit_reached"}),
        too_long_words=re.compile(
            r"prompt is too long|exceeds? (the )?context (limit|window)",
            re.IGNORECASE,
        ),
    )

    def path(self, _call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL."""
        return _PATH

    def headers(self, call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the API version for the model, and the credentials."""
        version = {"anthropic-version": call.data.traits.api_version}
        return version if key is None else {**version, "x-api-key": key.get_secret_value()}

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call."""
        return to_anthropic_body(call)

    def answer(self, call: ProviderCall, body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        return MessageStream(error_mapper, call, body.schema_method)

    def token_count_request(self, call: ProviderCall) -> TokenCountRequest:
        """Return the token-count request for a call."""
        return TokenCountRequest(f"{_PATH}/count_tokens", to_counting_body(call), "input_tokens")
