"""Gemini answers: one document, or several that each add to the answer; and errors of Google APIs.

Reasoning is billed whether or not it is shown. Function calls arrive whole. A call whose arguments are not
a JSON object, because they are truncated or faulty, does not arrive; the finish reason reports it. A
content filter before the first output blocks the prompt, and the answer has no candidates.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    ApiErrorKind,
    FrameTag,
    ReasoningPart,
    SimStopReason,
    StreamFrame,
    ToolUsePart,
)
from peripety.llmsim.wire.gemini.proto_json import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.llmsim.types import ApiError, BilledUsage, ReplyPart, SimReply


_Json = dict[str, Any]

_REASONS = {
    SimStopReason.END: "STOP",
    SimStopReason.TOOL_USE: "STOP",
    SimStopReason.STOP_SEQUENCE: "STOP",
    SimStopReason.LENGTH: "MAX_TOKENS",
    SimStopReason.REFUSAL: "PROHIBITED_CONTENT",
    SimStopReason.CONTENT_FILTER: "SAFETY",
}
_RATINGS = [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}]


def answer_document(reply: SimReply, *, thoughts: bool) -> _Json:
    """Return a complete answer, with reasoning if requested."""
    if _is_blocked(reply):
        return _blocked_document(reply)
    parts = [_part_value(part, part.pieces) for part in _visible_parts(reply, thoughts=thoughts)]
    _attach_signature(parts, reply)
    return _response(
        reply,
        reply.usage,
        {"content": {"parts": parts, "role": "model"}} | _finish_reason(reply),
    )


def answer_chunks(reply: SimReply, *, thoughts: bool) -> Iterator[StreamFrame[_Json]]:
    """Yield the same answer as documents with growing usage; the last one has the finish reason."""
    if _is_blocked(reply):
        yield StreamFrame(_blocked_document(reply), FrameTag.STOP)
        return
    parts = list(_part_pieces(_visible_parts(reply, thoughts=thoughts)))
    parts.append(StreamFrame({"text": ""}, FrameTag.STOP))
    _attach_signature([frame.data for frame in parts], reply)
    answered = reply.usage.output - reply.usage.reasoning
    said, thought = 0, (0 if thoughts else reply.usage.reasoning)
    for frame in parts:
        if frame.tag is FrameTag.STOP:
            said, thought = answered, reply.usage.reasoning
        elif frame.tag is FrameTag.REASONING:
            thought = min(thought + frame.tokens, reply.usage.reasoning)
        else:
            said = min(said + frame.tokens, answered)
        usage = replace(reply.usage, output=said + thought, reasoning=thought)
        candidate: _Json = {"content": {"parts": [frame.data], "role": "model"}}
        end = _finish_reason(reply) if frame.tag is FrameTag.STOP else {"index": 0}
        yield StreamFrame(_response(reply, usage, candidate | end), frame.tag, frame.tokens)


# ---- parts


def _visible_parts(reply: SimReply, *, thoughts: bool) -> list[ReplyPart]:
    return [
        part
        for part in reply.parts
        if not (isinstance(part, ReasoningPart) and not thoughts)
        and not (isinstance(part, ToolUsePart) and _arguments(part) is None)
    ]


def _part_pieces(parts: list[ReplyPart]) -> Iterator[StreamFrame[_Json]]:
    for part in parts:
        if isinstance(part, ToolUsePart):
            size = models.count_tokens(part.name) + models.count_tokens(part.arguments_json)
            yield StreamFrame(_part_value(part, part.pieces), FrameTag.ARGUMENTS, size)
            continue
        tag = FrameTag.REASONING if isinstance(part, ReasoningPart) else FrameTag.TEXT
        for piece, size in zip(part.pieces, models.token_shares(part.pieces), strict=True):
            yield StreamFrame(_part_value(part, (piece,)), tag, size)


def _part_value(part: ReplyPart, pieces: tuple[str, ...]) -> _Json:
    if isinstance(part, ToolUsePart):
        return {"functionCall": {"name": part.name, "args": _arguments(part), "id": part.id}}
    text = {"text": "".join(pieces)}
    return text | {"thought": True} if isinstance(part, ReasoningPart) else text


def _arguments(call: ToolUsePart) -> _Json | None:
    try:
        value = json.loads(call.arguments_json)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _attach_signature(parts: list[_Json], reply: SimReply) -> None:
    """Attach the signature to the first function call or, without one, to the last part."""
    call = next((part for part in parts if "functionCall" in part), None)
    kind = ReasoningPart if call is None else ToolUsePart
    signature = next((part.signature for part in reply.parts if isinstance(part, kind)), "")
    if parts and signature:
        (parts[-1] if call is None else call)["thoughtSignature"] = signature


# ---- the rest


def _finish_reason(reply: SimReply) -> _Json:
    spoilt = next(
        (part for part in reply.parts if isinstance(part, ToolUsePart) and _arguments(part) is None),
        None,
    )
    if spoilt is not None and reply.stop not in {SimStopReason.LENGTH, SimStopReason.CONTENT_FILTER}:
        message = f"Malformed function call: {spoilt.name}({spoilt.arguments_json})"
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message, "index": 0}
    reason: _Json = {"finishReason": _REASONS[reply.stop], "index": 0}
    return reason | {"safetyRatings": _RATINGS} if reply.stop is SimStopReason.CONTENT_FILTER else reason


def _is_blocked(reply: SimReply) -> bool:
    return reply.stop is SimStopReason.CONTENT_FILTER and not any(part.pieces for part in reply.parts)


def _blocked_document(reply: SimReply) -> _Json:
    feedback = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": _RATINGS}}
    return feedback | _response(reply, reply.usage, None)


def _response(reply: SimReply, usage: BilledUsage, candidate: _Json | None) -> _Json:
    return {
        **({} if candidate is None else {"candidates": [candidate]}),
        "usageMetadata": _usage(usage),
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def _usage(usage: BilledUsage) -> _Json:
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


_TYPES = "type.googleapis.com/google.rpc."
_SERVICE = "generativelanguage.googleapis.com"
_LIMITS_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"


class _Status(NamedTuple):
    code: int
    name: str


# Google reports a wrong key as an invalid argument, and a depleted account as an exhausted resource.
_STATUSES = {
    ApiErrorKind.INVALID_REQUEST: _Status(400, "INVALID_ARGUMENT"),
    ApiErrorKind.AUTHENTICATION: _Status(400, "INVALID_ARGUMENT"),
    ApiErrorKind.TOO_LARGE: _Status(400, "INVALID_ARGUMENT"),
    ApiErrorKind.PERMISSION: _Status(403, "PERMISSION_DENIED"),
    ApiErrorKind.NOT_FOUND: _Status(404, "NOT_FOUND"),
    ApiErrorKind.METHOD_NOT_ALLOWED: _Status(405, "UNIMPLEMENTED"),
    ApiErrorKind.CONFLICT: _Status(409, "ABORTED"),
    ApiErrorKind.BILLING: _Status(429, "RESOURCE_EXHAUSTED"),
    ApiErrorKind.RATE_LIMIT: _Status(429, "RESOURCE_EXHAUSTED"),
    ApiErrorKind.SERVER: _Status(500, "INTERNAL"),
    ApiErrorKind.UNAVAILABLE: _Status(503, "UNAVAILABLE"),
    ApiErrorKind.OVERLOADED: _Status(503, "UNAVAILABLE"),
    ApiErrorKind.TIMEOUT: _Status(504, "DEADLINE_EXCEEDED"),
}


def status_code(error: ApiError) -> int:
    """Return the HTTP status of an error."""
    return _STATUSES[error.kind].code


def error_body(error: ApiError) -> dict[str, Any]:
    """Return an error body; the retry delay is in the body and not in a header."""
    status = _STATUSES[error.kind]
    body: dict[str, Any] = {"code": status.code, "message": error.message, "status": status.name}
    if details := list(_details(error)):
        body["details"] = details
    return {"error": body}


def _details(error: ApiError) -> Iterator[dict[str, Any]]:
    match error.kind:
        case ApiErrorKind.AUTHENTICATION:
            metadata = {"service": _SERVICE}
            yield _typed_detail(
                "ErrorInfo",
                reason="API_KEY_INVALID",
                domain="googleapis.com",
                metadata=metadata,
            )
            yield _typed_detail("LocalizedMessage", locale="en-US", message=error.message)
        case ApiErrorKind.RATE_LIMIT:
            yield _typed_detail("QuotaFailure", violations=[_quota_details(error)])
            link = {"description": "Learn more about Gemini API quotas", "url": _LIMITS_PAGE}
            yield _typed_detail("Help", links=[link])
    if isinstance(error, BadFieldsError):
        violations = [
            ({"field": field} if field else {}) | {"description": description}
            for field, description in error.violations
        ]
        yield _typed_detail("BadRequest", fieldViolations=violations)
    if error.retry is not None:
        yield _typed_detail("RetryInfo", retryDelay=f"{error.retry.seconds:.9g}s")


def _typed_detail(type_name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": _TYPES + type_name, **fields}


def _quota_details(error: ApiError) -> dict[str, Any]:
    if "token" in error.message:
        metric = "generate_content_paid_tier_input_token_count"
        quota = "GenerateContentPaidTierInputTokensPerModelPerMinute"
    else:
        metric, quota = "generate_content_paid_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel"
    return {"quotaMetric": f"{_SERVICE}/{metric}", "quotaId": quota}
