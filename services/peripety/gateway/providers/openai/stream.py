"""Decodes the event stream of one Chat Completions answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import UnavailableError
from peripety.gateway.model import StopReason, Usage
from peripety.gateway.providers.base import Finished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.providers.openai.failures import Failures

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
        self.done = False

    @property
    def complete(self) -> bool:
        """Whether the whole text has arrived; the usage may still follow."""
        return self.done or self._stop_reason is not None

    def feed(self, data: str) -> str:
        """Take the data of one event; return the text it adds.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is not a chunk of an answer.
        """
        if self.done:
            return ""
        if data.strip() == "[DONE]":
            self.done = True
            return ""
        chunk = _object(_parse(data))
        if chunk.get("error"):
            raise self._failures.in_stream(chunk["error"])
        self._model = _text(chunk.get("model")) or self._model
        self._read_usage(_object(chunk.get("usage")))
        return self._read_choice(chunk.get("choices") or [])

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
        return Finished(reason or StopReason.OTHER, self._usage, self._model)

    def _read_choice(self, choices: Any) -> str:
        if not isinstance(choices, list):
            raise _malformed("choices is not a list")
        text = ""
        for choice in map(_object, choices):
            if choice.get("index", 0) == 0:
                reason = choice.get("finish_reason")
                if reason is not None:
                    self._stop_reason = _STOP_REASONS.get(_text(reason), StopReason.OTHER)
                delta = _object(choice.get("delta"))
                self._refused = self._refused or bool(_text(delta.get("refusal")))
                text += _text(delta.get("content"))
        return text

    def _read_usage(self, usage: Mapping[str, Any]) -> None:
        if not usage:
            return
        details = _object(usage.get("prompt_tokens_details"))
        # The counts of a stream that reports them with every chunk are totals: the last one holds.
        self._usage = Usage(
            input_tokens=_count(usage.get("prompt_tokens")),
            output_tokens=_count(usage.get("completion_tokens")),
            cache_read_tokens=_count(details.get("cached_tokens")),
            cache_write_tokens=_count(details.get("cache_write_tokens")),
        )


def _parse(data: str) -> Any:
    try:
        return jiter.from_json(data.encode())
    except ValueError:
        raise _malformed("an event is not JSON") from None


def _object(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _malformed("an object is missing where one belongs")
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _malformed("a text is missing where one belongs")
    return value


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _malformed(problem: str) -> UnavailableError:
    return UnavailableError(f"The server's stream cannot be read: {problem}", code="STREAM_MALFORMED")
