"""Decoder of the stream of a Gemini answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import StopReason, Usage
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.earlier_turns import CallIds
from peripety.gateway.providers.fields import (
    count_in,
    list_in,
    malformed,
    object_in,
    parse_object,
    text_in,
    truncated,
)
from peripety.gateway.providers.gemini.signatures import Signature
from peripety.gateway.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.model import SchemaMethod
    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.failures import Failures

__all__ = ["GeminiStream"]

_STOP_REASONS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    # It would continue in another request, which is not made.
    "CONTINUATION": StopReason.LENGTH,
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), StopReason.REFUSAL
    ),
}
# The model's output could not be parsed; a retry may succeed.
_UNREADABLE = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"})
# The request is incomplete; a retry does not help.
_REFUSED = frozenset({"MISSING_THOUGHT_SIGNATURE"})
_BAD_REQUEST = 400


class GeminiStream:
    """State of one answer.

    The stream has no end marker: an answer is complete once a finish reason was given. Unknown fields and
    part kinds are ignored; a known one of the wrong type is an error.

    Args:
        failures: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
    """

    def __init__(self, failures: Failures, call: Call, method: SchemaMethod | None = None) -> None:
        self._failures = failures
        self._call = call
        self._model = call.model
        self._names = ToolNames.of(call.request)
        self._ids = CallIds(call.request.messages)
        self._assembly = Assembly(method)
        self._stop_reason: StopReason | None = None
        self._counts: dict[str, int] = {}

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
            raise self._failures.in_stream(chunk["error"])
        self._model = text_in(chunk.get("modelVersion")) or self._model
        # The counts are totals: the last one is final.
        self._counts |= {name: count_in(n) for name, n in object_in(chunk.get("usageMetadata")).items()}
        if object_in(chunk.get("promptFeedback")).get("blockReason"):
            self._stop_reason = StopReason.REFUSAL
        return [delta for candidate in list_in(chunk.get("candidates")) for delta in self._read(candidate)]

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if self._stop_reason is None:
            raise truncated("without a finishReason")
        parts, reason = self._assembly.end(self._stop_reason)
        return Finished(parts, reason, self._usage(), self._model)

    def _read(self, value: Any) -> list[Delta]:
        candidate = object_in(value)
        if candidate.get("index", 0) != 0:
            return []
        parts = list_in(object_in(candidate.get("content")).get("parts"))
        deltas = [delta for part in parts for delta in self._read_part(object_in(part))]
        reason = text_in(candidate.get("finishReason"))
        if reason in _UNREADABLE:
            raise malformed(f"the model ended with {reason}")
        if reason in _REFUSED:
            message = text_in(candidate.get("finishMessage")) or reason
            raise self._failures.in_stream({"code": _BAD_REQUEST, "status": reason, "message": message})
        if reason:
            self._stop_reason = _STOP_REASONS.get(reason, StopReason.OTHER)
        return deltas

    def _read_part(self, part: Mapping[str, Any]) -> list[Delta]:
        signature, text = text_in(part.get("thoughtSignature")), text_in(part.get("text"))
        call = part.get("functionCall")
        if call is not None:
            return self._read_call(object_in(call), signature)
        is_thought = part.get("thought") is True
        if signature:
            # Thoughts are not sent back: a signature of one is sent with an empty text instead.
            self._assembly.add_state(
                Signature(signature, 0 if is_thought else len(text)).to_state(self._call)
            )
        return self._assembly.add_reasoning(text) if is_thought else self._assembly.add_text(text)

    def _read_call(self, call: Mapping[str, Any], signature: str) -> list[Delta]:
        if signature:
            self._assembly.add_state(Signature(signature).to_state(self._call))
        name = self._names.from_wire(text_in(call.get("name")))
        growing = self._assembly.open_call(self._ids.unlike(text_in(call.get("id"))), name)
        arguments = json.dumps(object_in(call.get("args")), ensure_ascii=False, separators=(",", ":"))
        return self._assembly.add_arguments(growing, arguments)

    def _usage(self) -> Usage:
        counts = self._counts
        thoughts = counts.get("thoughtsTokenCount", 0)
        return Usage(
            # Results of server-side tools are input too, and counted separately.
            input_tokens=counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0),
            output_tokens=counts.get("candidatesTokenCount", 0) + thoughts,
            cache_read_tokens=counts.get("cachedContentTokenCount", 0),
            reasoning_tokens=thoughts,
        )
