"""Chat completion writer: complete, or as stream chunks."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Frame, Reasoning, Refusal, Stop, Tag, Text, ToolUse
from peripety.simulator.truth.tokens import count, shares
from peripety.simulator.wire import sse
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.simulator.model import Part, Reply, Request, Usage

__all__ = ["Completion", "chunks", "obfuscation", "served_by", "texts"]

_FINISH = {
    Stop.END: "stop",
    Stop.STOP_SEQUENCE: "stop",
    Stop.REFUSAL: "stop",
    Stop.TOOL_USE: "tool_calls",
    Stop.LENGTH: "length",
    Stop.CONTENT_FILTER: "content_filter",
}
_TIERS = {"fast": "priority", "priority": "priority", "flex": "flex", "scale": "scale"}
_DONE = sse.event(b"[DONE]")
_PAD = 16

Delta = tuple[dict[str, Any], Tag, int]


class Completion:
    """An answer in OpenAI's format; compatible APIs override what differs."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self.request = request
        self.reply = reply

    def document(self) -> dict[str, Any]:
        """Return the answer as one JSON value."""
        choice = {
            "index": 0,
            "message": self.message(),
            "logprobs": None,
            "finish_reason": _FINISH[self.reply.stop],
        }
        return {
            **self.envelope("chat.completion"),
            "choices": [choice],
            "usage": self.usage(self.reply.usage),
        }

    def frames(self) -> Iterator[Frame[bytes]]:
        """Yield the answer as a stream."""
        options = self.request.options
        envelope = self.envelope("chat.completion.chunk")
        head = compact(envelope)[:-1] + b',"choices":[{"index":0,"delta":'
        tail = b'}],"usage":null' if options.get("include_usage") else b"}]"
        pad = options.get("include_obfuscation")

        def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
            body = compact(delta)
            rest = b',"obfuscation":' + compact(obfuscation(body)) + b"}" if pad else b"}"
            return sse.event(
                head + body + b',"logprobs":null,"finish_reason":' + compact(finish) + tail + rest
            )

        for delta, tag, tokens in self.deltas():
            yield Frame(chunk(delta), tag, tokens)
        yield Frame(chunk({}, _FINISH[self.reply.stop]), Tag.STOP)
        if options.get("include_usage"):
            last = {**envelope, "choices": [], "usage": self.usage(self.reply.usage)}
            yield Frame(sse.event(compact(last)), Tag.USAGE)
        yield Frame(_DONE, Tag.END)

    # ---- hooks of compatible APIs

    def envelope(self, kind: str) -> dict[str, Any]:
        """Return the first members of an answer and of each chunk."""
        reply = self.reply
        return {
            "id": f"chatcmpl-{reply.id}",
            "object": kind,
            "created": int(reply.created),
            "model": reply.model,
            "service_tier": served_by(self.request.options.get("service_tier")),
            "system_fingerprint": "fp_" + sha256(reply.model.encode()).hexdigest()[:10],
        }

    def message(self) -> dict[str, Any]:
        """Return the message of a complete answer."""
        said: dict[str, Any] = {
            "role": "assistant",
            "content": texts(self.reply, Text),
            "refusal": texts(self.reply, Refusal),
            "annotations": [],
        }
        calls = self.calls()
        return {**said, "tool_calls": calls} if calls else said

    def calls(self) -> list[dict[str, Any]]:
        """Return the tool calls of a complete answer."""
        return [
            {"id": f"call_{part.id}", "type": "function", "function": _function(part.name, part.json)}
            for part in self.reply.parts
            if isinstance(part, ToolUse)
        ]

    def deltas(self) -> Iterator[Delta]:
        """Yield the content of each chunk, with its tag and number of output tokens."""
        # Reasoning is hidden, but its time passes before the first output.
        hidden = sum(count(part.text) for part in self.reply.parts if isinstance(part, Reasoning))
        content = "" if texts(self.reply, Text) is not None else None
        yield {"role": "assistant", "content": content, "refusal": None}, Tag.START, hidden
        yield from self.spoken()

    def spoken(self) -> Iterator[Delta]:
        """Yield the chunks with prose, refusals and tool calls."""
        index = 0
        for part in self.reply.parts:
            if isinstance(part, Text):
                for piece, tokens in chunks(part):
                    yield {"content": piece}, Tag.TEXT, tokens
            elif isinstance(part, Refusal):
                for piece, tokens in chunks(part):
                    yield {"refusal": piece}, Tag.TEXT, tokens
            elif isinstance(part, ToolUse):
                begun = {"index": index, "id": f"call_{part.id}", "type": "function"}
                yield (
                    {"tool_calls": [{**begun, "function": _function(part.name, "")}]},
                    Tag.PART,
                    count(part.name),
                )
                for piece, tokens in chunks(part):
                    added = {"index": index, "function": {"arguments": piece}}
                    yield {"tool_calls": [added]}, Tag.ARGUMENTS, tokens
                index += 1

    def usage(self, usage: Usage) -> dict[str, Any]:
        """Return the usage object."""
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.read,
                "cache_write_tokens": sum(usage.written.values()),
                "audio_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }


def texts(reply: Reply, *kinds: type[Text | Refusal | Reasoning]) -> str | None:
    """Return the text of all parts of these types; None without such parts."""
    found = [part.text for part in reply.parts if isinstance(part, kinds)]
    return "".join(found) if found else None


def chunks(part: Part) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a part, each with its number of tokens."""
    return zip(part.pieces, shares(part.pieces), strict=True)


def served_by(tier: str | None) -> str:
    """Return the service tier that serves a requested tier."""
    return _TIERS.get(tier or "auto", "default")


def _function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def obfuscation(data: bytes) -> str:
    """Return deterministic padding that hides the length of a delta."""
    return sha256(data).hexdigest()[: _PAD - len(data) % _PAD]
