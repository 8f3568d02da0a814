"""Reader of answers of the Chat Completions API, for OpenAI, DeepSeek and compatible servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Refusal, Stop, Usage

if TYPE_CHECKING:
    from peripety.simulator.record.readers.draft import Draft

__all__ = ["read"]

_STOPS = {
    "stop": Stop.END,
    "length": Stop.LENGTH,
    "tool_calls": Stop.TOOL_USE,
    "function_call": Stop.TOOL_USE,
    "content_filter": Stop.CONTENT_FILTER,
}

_OVERLOADED = "insufficient_system_resource"  # DeepSeek's error inside an answer


def read(value: Any, draft: Draft) -> None:
    """Read a completion, or a chunk of one."""
    if value == "[DONE]":
        draft.ended = True
        return
    if "error" in value:
        draft.error = value
        return
    draft.id = value.get("id", "").removeprefix("chatcmpl-")
    for choice in value["choices"][:1]:
        _said(choice.get("message") or choice.get("delta") or {}, draft)
        _finish(choice.get("finish_reason"), draft)
        draft.ended |= "message" in choice
    if value.get("usage"):
        draft.usage = _usage(value["usage"])
    if draft.stop is Stop.END and draft.ends_with(Refusal):
        draft.stop = Stop.REFUSAL


def _finish(reason: str | None, draft: Draft) -> None:
    if reason == _OVERLOADED:
        draft.error = {"error": {"message": reason}}
    elif reason is not None:
        draft.stop = _STOPS.get(reason, Stop.END)


def _said(message: Any, draft: Draft) -> None:
    draft.reasoning(message.get("reasoning_content") or message.get("reasoning"))
    draft.text(message.get("content"))
    draft.refusal(message.get("refusal"))
    for place, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function") or {}
        if function.get("name"):
            draft.call(function["name"], call.get("id") or "")
        draft.arguments(function.get("arguments"), call.get("index", place))


def _usage(usage: Any) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    read_ = usage.get("prompt_cache_hit_tokens") or prompt.get("cached_tokens") or 0
    written = prompt.get("cache_write_tokens") or 0
    return Usage(
        fresh=usage["prompt_tokens"] - read_ - written,
        read=read_,
        written={"30m": written} if written else {},
        output=usage["completion_tokens"],
        reasoning=completion.get("reasoning_tokens") or 0,
    )
