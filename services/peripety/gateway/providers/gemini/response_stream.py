"""Gemini response stream of a `generateContent` call, and its wire protocol."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from peripety.gateway.message_normalization import ToolNames
from peripety.gateway.providers.completion_builder import (
    CompletionBuilder,
    get_count,
    get_list,
    get_object,
    get_text,
    malformed_stream_error,
    parse_object,
    truncated_stream_error,
)
from peripety.gateway.providers.error_mapping import ErrorVocabulary
from peripety.gateway.providers.gemini.request_body import ThoughtSignature, to_gemini_body
from peripety.gateway.providers.history_compat import CallIdGenerator
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.providers.wire_protocol import TokenCountRequest
from peripety.gateway.types.response import StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.error_mapping import ErrorMapper
    from peripety.gateway.providers.provider import Delta, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody
    from peripety.gateway.types.response import SchemaMethod


_STOP_REASONS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    # It would continue in another request, which is not made.
    "CONTINUATION": StopReason.LENGTH,
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        StopReason.REFUSAL,
    ),
}
# The model's output could not be parsed; a retry may succeed.
_UNREADABLE_REASONS = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"})
# The request is incomplete; a retry does not help.
_REJECTED_REASONS = frozenset({"MISSING_THOUGHT_SIGNATURE"})
_BAD_REQUEST = 400


class GeminiStream:
    """State of one answer.

    The stream has no end marker: an answer is complete once a finish reason was given. Unknown fields and
    part kinds are ignored; a known one of the wrong type is an error.

    Args:
        error_mapper: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(
        self,
        error_mapper: ErrorMapper,
        call: ProviderCall,
        method: SchemaMethod | None = None,
    ) -> None:
        self._error_mapper = error_mapper
        self._call = call
        self._model = call.model
        self._names = ToolNames.from_request(call.request)
        self._ids = CallIdGenerator(call.request.messages)
        self._builder = CompletionBuilder(method)
        self._stop_reason: StopReason | None = None
        self._reported_usage: dict[str, int] = {}

    @property
    def done(self) -> bool:
        """Return False: only the end of the connection marks the end."""
        return False

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived; usage may follow."""
        return self._stop_reason is not None

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is invalid, or the model's output could not be parsed.
        """
        chunk = parse_object(data)
        if chunk.get("error"):
            raise self._error_mapper.from_stream(chunk["error"])
        self._model = get_text(chunk.get("modelVersion")) or self._model
        # The counts are totals: the last one is final.
        self._reported_usage |= {
            name: get_count(n) for name, n in get_object(chunk.get("usageMetadata")).items()
        }
        if get_object(chunk.get("promptFeedback")).get("blockReason"):
            self._stop_reason = StopReason.REFUSAL
        return [delta for candidate in get_list(chunk.get("candidates")) for delta in self._read(candidate)]

    def finish(self) -> AnswerFinished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated_stream_error("without a finishReason")
        parts, reason = self._builder.finish(self._stop_reason)
        return AnswerFinished(parts, reason, self._usage(), self._model)

    def _read(self, value: Any) -> list[Delta]:
        candidate = get_object(value)
        if candidate.get("index", 0) != 0:
            return []
        parts = get_list(get_object(candidate.get("content")).get("parts"))
        deltas = [delta for part in parts for delta in self._read_part(get_object(part))]
        reason = get_text(candidate.get("finishReason"))
        if reason in _UNREADABLE_REASONS:
            raise malformed_stream_error(f"the model ended with {reason}")
        if reason in _REJECTED_REASONS:
            message = get_text(candidate.get("finishMessage")) or reason
            raise self._error_mapper.from_stream({"code": _BAD_REQUEST, "status": reason, "message": message})
        if reason:
            self._stop_reason = _STOP_REASONS.get(reason, StopReason.OTHER)
        return deltas

    def _read_part(self, part: Mapping[str, Any]) -> list[Delta]:
        signature, text = get_text(part.get("thoughtSignature")), get_text(part.get("text"))
        call = part.get("functionCall")
        if call is not None:
            return self._read_call(get_object(call), signature)
        is_thought = part.get("thought") is True
        if signature:
            # Thoughts are not sent back: a signature of one is sent with an empty text instead.
            self._builder.add_state(
                ThoughtSignature(signature, 0 if is_thought else len(text)).to_state(self._call),
            )
        return self._builder.add_reasoning(text) if is_thought else self._builder.add_text(text)

    def _read_call(self, call: Mapping[str, Any], signature: str) -> list[Delta]:
        if signature:
            self._builder.add_state(ThoughtSignature(signature).to_state(self._call))
        name = self._names.from_wire(get_text(call.get("name")))
        growing = self._builder.open_call(self._ids.make_unique(get_text(call.get("id"))), name)
        arguments = json.dumps(get_object(call.get("args")), ensure_ascii=False, separators=(",", ":"))
        return self._builder.add_arguments(growing, arguments)

    def _usage(self) -> Usage:
        counts = self._reported_usage
        thoughts = counts.get("thoughtsTokenCount", 0)
        return Usage(
            # Results of server-side tools are input too, and counted separately.
            input_tokens=counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0),
            output_tokens=counts.get("candidatesTokenCount", 0) + thoughts,
            cache_read_tokens=counts.get("cachedContentTokenCount", 0),
            reasoning_tokens=thoughts,
        )


class GeminiWire:
    """Implements `Wire`."""

    framing = StreamFraming.EVENTS
    vocabulary = ErrorVocabulary(
        rejected_keys=frozenset({"API_KEY_INVALID"}),
        permanent_limit_words=re.compile(r"\bcredits?\b|\bbilling account\b", re.IGNORECASE),
        too_long_words=re.compile(r"input token count .* exceeds", re.IGNORECASE),
    )

    def path(self, call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL; it does not contain the key."""
        return f"{_model_path(call)}:streamGenerateContent?alt=sse"

    def headers(self, _call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        return {} if key is None else {"x-goog-api-key": key.get_secret_value()}

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call."""
        return to_gemini_body(call)

    def answer(self, call: ProviderCall, body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        return GeminiStream(error_mapper, call, body.schema_method)

    def token_count_request(self, call: ProviderCall) -> TokenCountRequest:
        """Return the token-count request for a call."""
        asked = {"model": f"models/{call.model}", **to_gemini_body(call).document}
        return TokenCountRequest(
            f"{_model_path(call)}:countTokens",
            {"generateContentRequest": asked},
            "totalTokens",
        )


def _model_path(call: ProviderCall) -> str:
    return f"/v1beta/models/{quote(call.model, safe='')}"
