"""Decodes the event stream of one Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import UnavailableError
from peripety.gateway.model import StopReason, Usage
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.fields import count_in, list_in, object_in, parse_object, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.providers.base import Delta
    from peripety.gateway.providers.failures import Failures

__all__ = ["ChatCompletionStream"]

_STOP_REASONS = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}


class ChatCompletionStream:
    """The state of one answer.

    Only the first choice is read, and of it only what is said to the user. Unknown fields are
    ignored; a known one of the wrong type is an error, and so is an end that was not announced.

    Args:
        failures: makes errors of the errors that the server reports inside the stream.
        model: the model that was asked for.
    """

    def __init__(self, failures: Failures, model: str) -> None:
        self._failures = failures
        self._model = model
        self._stop_reason: StopReason | None = None
        self._refused = False
        self._usage = Usage()
        self._assembly = Assembly()
        self.done = False

    @property
    def complete(self) -> bool:
        """Whether the whole text has arrived; the usage may still follow."""
        return self.done or self._stop_reason is not None

    def feed(self, data: str) -> Sequence[Delta]:
        """Take the data of one event; return what it adds.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is not a chunk of an answer.
        """
        if self.done:
            return ()
        if data.strip() == "[DONE]":
            self.done = True
            return ()
        chunk = parse_object(data)
        if chunk.get("error"):
            raise self._failures.in_stream(chunk["error"])
        self._model = text_in(chunk.get("model")) or self._model
        self._read_usage(object_in(chunk.get("usage")))
        return self._read_choices(chunk.get("choices"))

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream ended before the answer did.
        """
        if not self.complete:
            raise UnavailableError(
                "The answer was cut off: the stream ended without a finish_reason; try again",
                code="STREAM_TRUNCATED",
            )
        reason = StopReason.REFUSAL if self._refused else self._stop_reason
        return Finished(self._assembly.parts(), reason or StopReason.OTHER, self._usage, self._model)

    def _read_choices(self, choices: Any) -> Sequence[Delta]:
        deltas: list[Delta] = []
        for choice in map(object_in, list_in(choices)):
            if choice.get("index", 0) == 0:
                reason = choice.get("finish_reason")
                if reason is not None:
                    self._stop_reason = _STOP_REASONS.get(text_in(reason), StopReason.OTHER)
                delta = object_in(choice.get("delta"))
                self._refused = self._refused or bool(text_in(delta.get("refusal")))
                deltas += self._assembly.add_text(text_in(delta.get("content")))
        return deltas

    def _read_usage(self, usage: Mapping[str, Any]) -> None:
        if not usage:
            return
        details = object_in(usage.get("prompt_tokens_details"))
        # The counts of a stream that reports them with every chunk are totals: the last one holds.
        self._usage = Usage(
            input_tokens=count_in(usage.get("prompt_tokens")),
            output_tokens=count_in(usage.get("completion_tokens")),
            cache_read_tokens=count_in(details.get("cached_tokens")),
            cache_write_tokens=count_in(details.get("cache_write_tokens")),
        )
