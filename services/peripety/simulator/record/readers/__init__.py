"""Readers of provider answers, complete or streamed: the inverse of the wire modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api
from peripety.simulator.record.readers import anthropic, gemini, ollama, openai_chat, openai_responses
from peripety.simulator.record.readers.draft import Draft
from peripety.simulator.record.readers.framing import Events, Framing, Lines, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Draft", "Reader"]

_READ: Mapping[Api, Callable[[Any, Draft], None]] = {
    Api.ANTHROPIC: anthropic.read,
    Api.OPENAI_CHAT: openai_chat.read,
    Api.OPENAI_RESPONSES: openai_responses.read,
    Api.DEEPSEEK: openai_chat.read,
    Api.GEMINI: gemini.read,
    Api.OLLAMA: ollama.read,
}
_FRAMING: Mapping[str, type[Framing]] = {"text/event-stream": Events, "application/x-ndjson": Lines}


class Reader:
    """Incremental reader of one answer.

    Args:
        api: the API of the answer.
        media_type: the `Content-Type`.

    Attributes:
        draft: the answer so far.
    """

    def __init__(self, api: Api, media_type: str) -> None:
        self.draft = Draft()
        self._read = _READ[api]
        self._framing = _FRAMING.get(media_type.partition(";")[0].strip().lower(), Whole)()

    def feed(self, data: bytes, now_ms: float) -> None:
        """Read bytes.

        Args:
            data: the bytes.
            now_ms: their time, in milliseconds after the request.

        Raises:
            ValueError: the bytes are not an answer of the API.
        """
        self.draft.now_ms = now_ms
        self._take(self._framing.feed(data))

    def close(self) -> None:
        """Read the end.

        Raises:
            ValueError: the bytes are not an answer of the API.
        """
        self._take(self._framing.close())

    def _take(self, values: Iterator[Any]) -> None:
        for value in values:
            try:
                self._read(value, self.draft)
            except (AttributeError, KeyError, IndexError, TypeError) as error:
                raise ValueError(f"not an answer of the API: {str(value)[:80]}") from error
