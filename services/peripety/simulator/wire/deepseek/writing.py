"""DeepSeek chat completions with visible reasoning."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from peripety.simulator.model import Frame, Reasoning, Refusal, Tag, Text
from peripety.simulator.wire import sse
from peripety.simulator.wire.openai.chat_writing import Completion, chunks, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.model import Usage
    from peripety.simulator.wire.openai.chat_writing import Delta

__all__ = ["Thoughts"]

_KEEP_ALIVE = Frame(sse.comment("keep-alive"), Tag.NOISE)


class Thoughts(Completion):
    """An answer, reasoning first."""

    def frames(self) -> Iterator[Frame[bytes]]:
        """Yield the answer as a stream, with comments before the first token."""
        yield _KEEP_ALIVE
        yield from super().frames()

    def envelope(self, kind: str) -> dict[str, Any]:
        """Return the first members of an answer and of each chunk."""
        reply = self.reply
        return {
            "id": str(UUID(bytes=sha256(reply.id.encode()).digest()[:16], version=4)),
            "object": kind,
            "created": int(reply.created),
            "model": reply.model,
            "system_fingerprint": f"fp_{sha256(reply.model.encode()).hexdigest()[:10]}_prod",
        }

    def message(self) -> dict[str, Any]:
        """Return the message of a complete answer; refusals are prose."""
        said: dict[str, Any] = {"role": "assistant", "content": texts(self.reply, Text, Refusal) or ""}
        if self.request.reasoning:
            said["reasoning_content"] = texts(self.reply, Reasoning) or ""
        calls = [{"index": at, **call} for at, call in enumerate(self.calls())]
        return {**said, "tool_calls": calls} if calls else said

    def deltas(self) -> Iterator[Delta]:
        """Yield the content of each chunk: reasoning first."""
        thinking = self.request.reasoning
        begun: dict[str, Any] = {"role": "assistant", "content": ""}
        yield (
            {**begun, "content": None, "reasoning_content": ""} if thinking else begun,
            Tag.START,
            0,
        )
        for part in self.reply.parts:
            if isinstance(part, Reasoning):
                for piece, tokens in chunks(part):
                    yield {"content": None, "reasoning_content": piece}, Tag.REASONING, tokens
        for delta, tag, tokens in self.spoken():
            content = delta.get("content", delta.get("refusal"))
            if content is None:
                yield delta, tag, tokens
            else:
                rest = {"reasoning_content": None} if thinking else {}
                yield {"content": content, **rest}, tag, tokens

    def usage(self, usage: Usage) -> dict[str, Any]:
        """Return the usage; input read from the cache is a hit, all other input a miss."""
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "prompt_cache_hit_tokens": usage.read,
            "prompt_cache_miss_tokens": usage.input - usage.read,
        }
