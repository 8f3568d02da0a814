"""Reader of answers of OpenAI's Responses API."""

from __future__ import annotations

from typing import Any

from peripety.simulator.model import Refusal, Stop, Usage
from peripety.simulator.record.readers.draft import Draft

__all__ = ["read"]

_DELTAS = {
    "response.function_call_arguments.delta": Draft.arguments,
    "response.output_text.delta": Draft.text,
    "response.refusal.delta": Draft.refusal,
    "response.reasoning_summary_text.delta": Draft.reasoning,
    "response.reasoning_text.delta": Draft.reasoning,
}
_INCOMPLETE = {"content_filter": Stop.CONTENT_FILTER}


def read(value: Any, draft: Draft) -> None:
    """Read a response, or an event of one."""
    if value == "[DONE]":
        return
    if value.get("object") == "response":
        for item in value["output"]:
            _item(item, draft)
        _end(value, draft)
        return
    match value["type"]:
        case "response.output_item.added" if value["item"]["type"] == "function_call":
            draft.call(value["item"]["name"], value["item"]["call_id"])
        case kind if kind in _DELTAS:
            _DELTAS[kind](draft, value["delta"])
        case "response.completed" | "response.incomplete":
            _end(value["response"], draft)
        case "response.failed":
            draft.error = {"error": value["response"]["error"]}
        case "error":
            draft.error = {"error": value.get("error") or value}


def _item(item: Any, draft: Draft) -> None:
    match item["type"]:
        case "message":
            for part in item["content"]:
                draft.text(part.get("text"))
                draft.refusal(part.get("refusal"))
        case "function_call":
            draft.call(item["name"], item["call_id"])
            draft.arguments(item["arguments"])
        case "reasoning":
            for part in (*item.get("summary", ()), *(item.get("content") or ())):
                draft.reasoning(part["text"])


def _end(response: Any, draft: Draft) -> None:
    draft.ended = True
    draft.id = response["id"].removeprefix("resp_")
    if response["status"] == "incomplete":
        draft.stop = _INCOMPLETE.get(response["incomplete_details"]["reason"], Stop.LENGTH)
    elif response["status"] == "failed":
        draft.error = {"error": response["error"]}
    elif draft.ends_with(Refusal):
        draft.stop = Stop.REFUSAL
    else:
        draft.stop = Stop.TOOL_USE if draft.calls() else Stop.END
    if response.get("usage"):
        draft.usage = _usage(response["usage"])


def _usage(usage: Any) -> Usage:
    details = usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    written = details.get("cache_write_tokens") or 0
    return Usage(
        fresh=usage["input_tokens"] - cached - written,
        read=cached,
        written={"30m": written} if written else {},
        output=usage["output_tokens"],
        reasoning=(usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
    )
