"""Gemini answers: one document, or several that each add to the answer.

Reasoning is billed whether or not it is shown. Function calls arrive whole. A call whose arguments are not a
JSON object, because they are truncated or faulty, does not arrive; the finish reason reports it. A content
filter before the first output blocks the prompt, and the answer has no candidates.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Frame, Reasoning, Stop, Tag, ToolUse
from peripety.simulator.truth import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.model import Part, Reply, Usage

__all__ = ["chunks", "document"]

_Json = dict[str, Any]

_REASONS = {
    Stop.END: "STOP",
    Stop.TOOL_USE: "STOP",
    Stop.STOP_SEQUENCE: "STOP",
    Stop.LENGTH: "MAX_TOKENS",
    Stop.REFUSAL: "PROHIBITED_CONTENT",
    Stop.CONTENT_FILTER: "SAFETY",
}
_RATINGS = [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}]


def document(reply: Reply, *, thoughts: bool) -> _Json:
    """Return a complete answer, with reasoning if requested."""
    if _is_blocked(reply):
        return _blocked(reply)
    parts = [_json(part, part.pieces) for part in _shown(reply, thoughts=thoughts)]
    _sign(parts, reply)
    return _response(reply, reply.usage, {"content": {"parts": parts, "role": "model"}} | _finish(reply))


def chunks(reply: Reply, *, thoughts: bool) -> Iterator[Frame[_Json]]:
    """Yield the same answer as documents with growing usage; the last one has the finish reason."""
    if _is_blocked(reply):
        yield Frame(_blocked(reply), Tag.STOP)
        return
    parts = list(_pieces(_shown(reply, thoughts=thoughts)))
    parts.append(Frame({"text": ""}, Tag.STOP))
    _sign([frame.data for frame in parts], reply)
    answered = reply.usage.output - reply.usage.reasoning
    said, thought = 0, (0 if thoughts else reply.usage.reasoning)
    for frame in parts:
        if frame.tag is Tag.STOP:
            said, thought = answered, reply.usage.reasoning
        elif frame.tag is Tag.REASONING:
            thought = min(thought + frame.tokens, reply.usage.reasoning)
        else:
            said = min(said + frame.tokens, answered)
        usage = replace(reply.usage, output=said + thought, reasoning=thought)
        candidate: _Json = {"content": {"parts": [frame.data], "role": "model"}}
        end = _finish(reply) if frame.tag is Tag.STOP else {"index": 0}
        yield Frame(_response(reply, usage, candidate | end), frame.tag, frame.tokens)


# ---- parts


def _shown(reply: Reply, *, thoughts: bool) -> list[Part]:
    return [
        part
        for part in reply.parts
        if not (isinstance(part, Reasoning) and not thoughts)
        and not (isinstance(part, ToolUse) and _arguments(part) is None)
    ]


def _pieces(parts: list[Part]) -> Iterator[Frame[_Json]]:
    for part in parts:
        if isinstance(part, ToolUse):
            size = tokens.count(part.name) + tokens.count(part.json)
            yield Frame(_json(part, part.pieces), Tag.ARGUMENTS, size)
            continue
        tag = Tag.REASONING if isinstance(part, Reasoning) else Tag.TEXT
        for piece, size in zip(part.pieces, tokens.shares(part.pieces), strict=True):
            yield Frame(_json(part, (piece,)), tag, size)


def _json(part: Part, pieces: tuple[str, ...]) -> _Json:
    if isinstance(part, ToolUse):
        return {"functionCall": {"name": part.name, "args": _arguments(part), "id": part.id}}
    text = {"text": "".join(pieces)}
    return text | {"thought": True} if isinstance(part, Reasoning) else text


def _arguments(call: ToolUse) -> _Json | None:
    try:
        value = json.loads(call.json)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _sign(parts: list[_Json], reply: Reply) -> None:
    """Attach the signature to the first function call or, without one, to the last part."""
    call = next((part for part in parts if "functionCall" in part), None)
    kind = Reasoning if call is None else ToolUse
    signature = next((part.signature for part in reply.parts if isinstance(part, kind)), "")
    if parts and signature:
        (parts[-1] if call is None else call)["thoughtSignature"] = signature


# ---- the rest


def _finish(reply: Reply) -> _Json:
    spoilt = next(
        (part for part in reply.parts if isinstance(part, ToolUse) and _arguments(part) is None), None
    )
    if spoilt is not None and reply.stop not in {Stop.LENGTH, Stop.CONTENT_FILTER}:
        message = f"Malformed function call: {spoilt.name}({spoilt.json})"
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message, "index": 0}
    reason: _Json = {"finishReason": _REASONS[reply.stop], "index": 0}
    return reason | {"safetyRatings": _RATINGS} if reply.stop is Stop.CONTENT_FILTER else reason


def _is_blocked(reply: Reply) -> bool:
    return reply.stop is Stop.CONTENT_FILTER and not any(part.pieces for part in reply.parts)


def _blocked(reply: Reply) -> _Json:
    feedback = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": _RATINGS}}
    return feedback | _response(reply, reply.usage, None)


def _response(reply: Reply, usage: Usage, candidate: _Json | None) -> _Json:
    return {
        **({} if candidate is None else {"candidates": [candidate]}),
        "usageMetadata": _usage(usage),
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def _usage(usage: Usage) -> _Json:
    """Return the usage.

    The prompt count includes cached tokens; the candidates count excludes reasoning.
    """
    counts: _Json = {"promptTokenCount": usage.input}
    if usage.read:
        counts["cachedContentTokenCount"] = usage.read
    counts["candidatesTokenCount"] = usage.output - usage.reasoning
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    counts["totalTokenCount"] = usage.input + usage.output
    counts["promptTokensDetails"] = _text_tokens(usage.input)
    if usage.read:
        counts["cacheTokensDetails"] = _text_tokens(usage.read)
    return counts


def _text_tokens(count: int) -> list[_Json]:
    return [{"modality": "TEXT", "tokenCount": count}]
