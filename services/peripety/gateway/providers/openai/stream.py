"""Decoder of the event stream of a Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import Capability
from peripety.gateway.model import ProviderState, Reasoning, SchemaMethod, StopReason, Text, Usage
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.earlier_turns import CallIds
from peripety.gateway.providers.fields import count_in, list_in, object_in, parse_object, text_in, truncated
from peripety.gateway.providers.openai.calls import StreamedCalls
from peripety.gateway.providers.openai.thoughts import InlineThoughts
from peripety.gateway.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.openai.dialect import Dialect

__all__ = ["ChatCompletionStream"]

_STOP_REASONS = {
    "stop": StopReason.END,
    **dict.fromkeys(("tool_calls", "function_call"), StopReason.TOOL_USE),
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
# DeepSeek's machines could not continue.
_GIVEN_UP = "insufficient_system_resource"
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class ChatCompletionStream:
    """State of one answer.

    Only the first choice is read. Unknown fields are ignored; a known one of the wrong type is an error, and
    so is an unannounced end.

    Args:
        failures: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
        dialect: the dialect of the server.
    """

    def __init__(self, failures: Failures, call: Call, method: SchemaMethod | None, dialect: Dialect) -> None:
        self._failures = failures
        self._call = call
        self._model = call.model
        self._assembly = Assembly(method)
        self._calls = StreamedCalls(
            self._assembly, ToolNames.of(call.request), CallIds(call.request.messages)
        )
        self._inline = (
            InlineThoughts(thinks=_thinks(call, method, dialect)) if dialect.inline_thoughts else None
        )
        self._thoughts: list[str] = []
        self._finish_reason: str | None = None
        self._refused = False
        self._usage = Usage()
        self.done = False

    @property
    def complete(self) -> bool:
        """Return True if the whole text has arrived; the usage may follow."""
        return self.done or self._finish_reason is not None

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is not a chunk of an answer.
        """
        if self.done:
            return ()
        if data.strip() == "[DONE]":
            self.done = True
            return self._release(cut=False)
        chunk = parse_object(data)
        if chunk.get("error"):
            raise self._failures.in_stream(chunk["error"])
        self._model = text_in(chunk.get("model")) or self._model
        if usage := object_in(chunk.get("usage")):
            # The counts of a stream that reports them with every chunk are totals: the last one is final.
            self._usage = _counted(usage)
        return self._read_choices(chunk.get("choices"))

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if not self.complete:
            raise truncated("without a finish_reason")
        parts, reason = self._assembly.end(self._stop_reason())
        if self._thoughts and self._call.data.traits.replays_reasoning:
            parts += (ProviderState(self._call.data.provider, "".join(self._thoughts).encode()),)
        return Finished(parts, reason, self._usage, self._model)

    def _stop_reason(self) -> StopReason:
        if self._refused:
            return StopReason.REFUSAL
        # Some servers send no finish reason.
        return _STOP_REASONS.get(self._finish_reason or "stop", StopReason.OTHER)

    def _read_choices(self, choices: Any) -> Sequence[Delta]:
        deltas: list[Delta] = []
        for choice in map(object_in, list_in(choices)):
            if choice.get("index", 0) == 0:
                deltas += self._read_delta(object_in(choice.get("delta")))
                if reason := text_in(choice.get("finish_reason")):
                    deltas += self._end(reason)
        return deltas

    def _read_delta(self, delta: Mapping[str, Any]) -> list[Delta]:
        deltas: list[Delta] = []
        if thought := next(filter(None, (text_in(delta.get(field)) for field in _REASONING_FIELDS)), ""):
            deltas += self._told(Reasoning(thought))
            if self._inline is not None:
                self._inline.stop()
        deltas += self._read_text(text_in(delta.get("content")))
        if refusal := text_in(delta.get("refusal")):
            self._refused = True
            deltas += self._told(Text(refusal))
        pieces = list_in(delta.get("tool_calls"))
        if pieces:
            deltas += self._release(cut=False)
        return deltas + [each for piece in pieces for each in self._calls.feed(object_in(piece))]

    def _read_text(self, text: str) -> list[Delta]:
        parted = [Text(text)] if self._inline is None else self._inline.feed(text)
        return [delta for part in parted for delta in self._told(part)]

    def _release(self, *, cut: bool) -> list[Delta]:
        """Release the text that was held back until it was known whether it is reasoning."""
        held = [] if self._inline is None else self._inline.finish(cut=cut)
        return [delta for part in held for delta in self._told(part)]

    def _told(self, part: Text | Reasoning) -> list[Delta]:
        if isinstance(part, Text):
            return self._assembly.add_text(part.text)
        self._thoughts.append(part.text)
        return self._assembly.add_reasoning(part.text)

    def _end(self, reason: str) -> list[Delta]:
        if reason == _GIVEN_UP:
            raise self._failures.in_stream({"message": "out of capacity", "code": 503})
        self._finish_reason = reason
        return self._release(cut=reason == "length")


def _thinks(call: Call, method: SchemaMethod | None, dialect: Dialect) -> bool:
    """Return True if an answer may start with reasoning without an opening tag."""
    if method not in {None, SchemaMethod.EXTRACTION}:
        # A schema is enforced from the first character on, so the text contains no reasoning.
        return False
    opened = dialect.opened_thoughts
    known = opened is not None and opened.search(call.model) is not None
    return known or Capability.REASONING in call.data.capabilities


def _counted(usage: Mapping[str, Any]) -> Usage:
    read = object_in(usage.get("prompt_tokens_details"))
    written = object_in(usage.get("completion_tokens_details"))
    # DeepSeek's own field name is the older one.
    cached = count_in(read.get("cached_tokens")) or count_in(usage.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=count_in(usage.get("prompt_tokens")),
        output_tokens=count_in(usage.get("completion_tokens")),
        cache_read_tokens=cached,
        cache_write_tokens=count_in(read.get("cache_write_tokens")),
        reasoning_tokens=count_in(written.get("reasoning_tokens")),
    )
