"""Reader of answers of the Gemini API: documents that each add to the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Stop, Usage

if TYPE_CHECKING:
    from peripety.simulator.record.readers.draft import Draft

__all__ = ["read"]

_FILTERED = frozenset({"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "SPII"})


def read(value: Any, draft: Draft) -> None:
    """Read one document."""
    if "error" in value:
        draft.error = value
        return
    draft.id = value.get("responseId", "")
    for candidate in value.get("candidates", ())[:1]:
        for part in (candidate.get("content") or {}).get("parts", ()):
            _part(part, draft)
        if "finishReason" in candidate:
            draft.stop = _stop(candidate["finishReason"], draft)
            draft.ended = True
    if (value.get("promptFeedback") or {}).get("blockReason"):
        draft.stop = Stop.CONTENT_FILTER
        draft.ended = True
    if "usageMetadata" in value:
        draft.usage = _usage(value["usageMetadata"])


def _part(part: Any, draft: Draft) -> None:
    if call := part.get("functionCall"):
        draft.call(call["name"], call.get("id") or "")
        draft.arguments(json.dumps(call.get("args") or {}, ensure_ascii=False))
    elif part.get("thought"):
        draft.reasoning(part.get("text"))
    else:
        draft.text(part.get("text"))


def _stop(reason: str, draft: Draft) -> Stop:
    if reason in _FILTERED:
        return Stop.CONTENT_FILTER
    if reason == "MAX_TOKENS":
        return Stop.LENGTH
    if reason == "PROHIBITED_CONTENT":
        return Stop.REFUSAL
    return Stop.TOOL_USE if draft.calls() else Stop.END


def _usage(usage: Any) -> Usage:
    cached = usage.get("cachedContentTokenCount", 0)
    thoughts = usage.get("thoughtsTokenCount", 0)
    return Usage(
        fresh=usage.get("promptTokenCount", 0) - cached,
        read=cached,
        output=usage.get("candidatesTokenCount", 0) + thoughts,
        reasoning=thoughts,
    )
