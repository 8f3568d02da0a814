"""Readers of provider answers, complete or streamed: the inverse of the wire modules.

There is one reader for each API: Anthropic's Messages, Gemini, Ollama, Chat Completions (OpenAI, DeepSeek
and compatible servers) and OpenAI's Responses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.llmsim.record.response_draft import (
    DocumentParser,
    JsonLinesParser,
    JsonStreamParser,
    ResponseDraft,
    SseParser,
)
from peripety.llmsim.types import Api, BilledUsage, RefusalPart, SimStopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_ANTHROPIC_STOPS = {
    "end_turn": SimStopReason.END,
    "max_tokens": SimStopReason.LENGTH,
    "model_context_window_exceeded": SimStopReason.LENGTH,
    "stop_sequence": SimStopReason.STOP_SEQUENCE,
    "tool_use": SimStopReason.TOOL_USE,
    "refusal": SimStopReason.REFUSAL,
}
_TTL_MEMBERS = {"ephemeral_5m_input_tokens": "5m", "ephemeral_1h_input_tokens": "1h"}


def read_anthropic(value: Any, draft: ResponseDraft) -> None:
    """Read a message, or an event of one."""
    match value["type"]:
        case "message":
            _begin_message(value, draft)
            for block in value["content"]:
                _begin_block(block, draft)
            _end_message(value, draft)
            draft.ended = True
        case "message_start":
            _begin_message(value["message"], draft)
        case "content_block_start":
            _begin_block({**value["content_block"], "input": None}, draft)
        case "content_block_delta":
            delta = value["delta"]
            draft.add_text(delta.get("text"))
            draft.add_reasoning(delta.get("thinking"))
            draft.add_arguments(delta.get("partial_json"))
        case "message_delta":
            _end_message({**value["delta"], "usage": value.get("usage")}, draft)
        case "message_stop":
            draft.ended = True
        case "error":
            draft.error = value


def _begin_message(message: Any, draft: ResponseDraft) -> None:
    draft.id = message["id"].removeprefix("msg_")
    _read_usage(message.get("usage"), draft)


def _begin_block(block: Any, draft: ResponseDraft) -> None:
    match block["type"]:
        case "text":
            draft.add_text(block["text"])
        case "thinking":
            draft.add_reasoning(block["thinking"])
        case "tool_use":
            draft.begin_call(block["name"], block["id"])
            if block["input"] is not None:
                draft.add_arguments(json.dumps(block["input"], ensure_ascii=False))
        case _:
            draft.begin_unknown()


def _end_message(message: Any, draft: ResponseDraft) -> None:
    draft.stop = _ANTHROPIC_STOPS.get(message["stop_reason"], SimStopReason.END)
    draft.stop_sequence = message.get("stop_sequence")
    if draft.stop is SimStopReason.REFUSAL:
        draft.add_refusal((message.get("stop_details") or {}).get("explanation"))
    _read_usage(message.get("usage"), draft)


def _read_usage(usage: Any, draft: ResponseDraft) -> None:
    """Read token counts. They are cumulative: later counts replace earlier ones."""
    if not usage:
        return
    known = draft.usage or BilledUsage()
    creation = usage.get("cache_creation")
    written = usage.get("cache_creation_input_tokens")
    by_ttl = (
        {ttl: creation[name] for name, ttl in _TTL_MEMBERS.items() if creation.get(name)} if creation else {}
    )
    if not by_ttl and written and sum(known.written.values()) != written:
        by_ttl = {"5m": written}
    details = usage.get("output_tokens_details") or {}
    draft.usage = BilledUsage(
        fresh=_latest_count(usage.get("input_tokens"), known.fresh),
        read=_latest_count(usage.get("cache_read_input_tokens"), known.read),
        written=by_ttl or known.written,
        output=_latest_count(usage.get("output_tokens"), known.output),
        reasoning=_latest_count(details.get("thinking_tokens"), known.reasoning),
    )


def _latest_count(count: int | None, known: int) -> int:
    return known if count is None else count


_FILTER_REASONS = frozenset({"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "SPII"})


def read_gemini(value: Any, draft: ResponseDraft) -> None:
    """Read one document."""
    if "error" in value:
        draft.error = value
        return
    draft.id = value.get("responseId", "")
    for candidate in value.get("candidates", ())[:1]:
        for part in (candidate.get("content") or {}).get("parts", ()):
            _read_part(part, draft)
        if "finishReason" in candidate:
            draft.stop = _stop_reason(candidate["finishReason"], draft)
            draft.ended = True
    if (value.get("promptFeedback") or {}).get("blockReason"):
        draft.stop = SimStopReason.CONTENT_FILTER
        draft.ended = True
    if "usageMetadata" in value:
        draft.usage = _gemini_usage(value["usageMetadata"])


def _read_part(part: Any, draft: ResponseDraft) -> None:
    if call := part.get("functionCall"):
        draft.begin_call(call["name"], call.get("id") or "")
        draft.add_arguments(json.dumps(call.get("args") or {}, ensure_ascii=False))
    elif part.get("thought"):
        draft.add_reasoning(part.get("text"))
    else:
        draft.add_text(part.get("text"))


def _stop_reason(reason: str, draft: ResponseDraft) -> SimStopReason:
    if reason in _FILTER_REASONS:
        return SimStopReason.CONTENT_FILTER
    if reason == "MAX_TOKENS":
        return SimStopReason.LENGTH
    if reason == "PROHIBITED_CONTENT":
        return SimStopReason.REFUSAL
    return SimStopReason.TOOL_USE if draft.has_calls() else SimStopReason.END


def _gemini_usage(usage: Any) -> BilledUsage:
    cached = usage.get("cachedContentTokenCount", 0)
    thoughts = usage.get("thoughtsTokenCount", 0)
    return BilledUsage(
        fresh=usage.get("promptTokenCount", 0) - cached,
        read=cached,
        output=usage.get("candidatesTokenCount", 0) + thoughts,
        reasoning=thoughts,
    )


def read_ollama(value: Any, draft: ResponseDraft) -> None:
    """Read one line, or the only document."""
    if "error" in value:
        draft.error = value
        return
    message = value.get("message") or {}
    draft.add_reasoning(message.get("thinking"))
    draft.add_text(message.get("content"))
    for call in message.get("tool_calls") or ():
        draft.begin_call(call["function"]["name"], call.get("id") or "")
        draft.add_arguments(json.dumps(call["function"].get("arguments") or {}, ensure_ascii=False))
    if value.get("done"):
        ended = SimStopReason.TOOL_USE if draft.has_calls() else SimStopReason.END
        draft.stop = SimStopReason.LENGTH if value.get("done_reason") == "length" else ended
        draft.usage = BilledUsage(fresh=value.get("prompt_eval_count", 0), output=value.get("eval_count", 0))
        draft.ended = True


_CHAT_STOPS = {
    "stop": SimStopReason.END,
    "length": SimStopReason.LENGTH,
    "tool_calls": SimStopReason.TOOL_USE,
    "function_call": SimStopReason.TOOL_USE,
    "content_filter": SimStopReason.CONTENT_FILTER,
}

_OVERLOADED = "insufficient_system_resource"  # DeepSeek's error inside an answer


def read_chat_completion(value: Any, draft: ResponseDraft) -> None:
    """Read a completion, or a chunk of one."""
    if value == "[DONE]":
        draft.ended = True
        return
    if "error" in value:
        draft.error = value
        return
    draft.id = value.get("id", "").removeprefix("chatcmpl-")
    for choice in value["choices"][:1]:
        _read_chat_message(choice.get("message") or choice.get("delta") or {}, draft)
        _finish_chat(choice.get("finish_reason"), draft)
        draft.ended |= "message" in choice
    if value.get("usage"):
        draft.usage = _chat_usage(value["usage"])
    if draft.stop is SimStopReason.END and draft.ends_with(RefusalPart):
        draft.stop = SimStopReason.REFUSAL


def _finish_chat(reason: str | None, draft: ResponseDraft) -> None:
    if reason == _OVERLOADED:
        draft.error = {"error": {"message": reason}}
    elif reason is not None:
        draft.stop = _CHAT_STOPS.get(reason, SimStopReason.END)


def _read_chat_message(message: Any, draft: ResponseDraft) -> None:
    draft.add_reasoning(message.get("reasoning_content") or message.get("reasoning"))
    draft.add_text(message.get("content"))
    draft.add_refusal(message.get("refusal"))
    for place, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function") or {}
        if function.get("name"):
            draft.begin_call(function["name"], call.get("id") or "")
        draft.add_arguments(function.get("arguments"), call.get("index", place))


def _chat_usage(usage: Any) -> BilledUsage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    read_ = usage.get("prompt_cache_hit_tokens") or prompt.get("cached_tokens") or 0
    written = prompt.get("cache_write_tokens") or 0
    return BilledUsage(
        fresh=usage["prompt_tokens"] - read_ - written,
        read=read_,
        written={"30m": written} if written else {},
        output=usage["completion_tokens"],
        reasoning=completion.get("reasoning_tokens") or 0,
    )


_READ_DELTA = {
    "response.function_call_arguments.delta": ResponseDraft.add_arguments,
    "response.output_text.delta": ResponseDraft.add_text,
    "response.refusal.delta": ResponseDraft.add_refusal,
    "response.reasoning_summary_text.delta": ResponseDraft.add_reasoning,
    "response.reasoning_text.delta": ResponseDraft.add_reasoning,
}
_INCOMPLETE = {"content_filter": SimStopReason.CONTENT_FILTER}


def read_response(value: Any, draft: ResponseDraft) -> None:
    """Read a response, or an event of one."""
    if value == "[DONE]":
        return
    if value.get("object") == "response":
        for item in value["output"]:
            _begin_item(item, draft)
        _end_response(value, draft)
        return
    match value["type"]:
        case "response.output_item.added" if value["item"]["type"] == "function_call":
            draft.begin_call(value["item"]["name"], value["item"]["call_id"])
        case kind if kind in _READ_DELTA:
            _READ_DELTA[kind](draft, value["delta"])
        case "response.completed" | "response.incomplete":
            _end_response(value["response"], draft)
        case "response.failed":
            draft.error = {"error": value["response"]["error"]}
        case "error":
            draft.error = {"error": value.get("error") or value}


def _begin_item(item: Any, draft: ResponseDraft) -> None:
    match item["type"]:
        case "message":
            for part in item["content"]:
                draft.add_text(part.get("text"))
                draft.add_refusal(part.get("refusal"))
        case "function_call":
            draft.begin_call(item["name"], item["call_id"])
            draft.add_arguments(item["arguments"])
        case "reasoning":
            for part in (*item.get("summary", ()), *(item.get("content") or ())):
                draft.add_reasoning(part["text"])


def _end_response(response: Any, draft: ResponseDraft) -> None:
    draft.ended = True
    draft.id = response["id"].removeprefix("resp_")
    if response["status"] == "incomplete":
        draft.stop = _INCOMPLETE.get(response["incomplete_details"]["reason"], SimStopReason.LENGTH)
    elif response["status"] == "failed":
        draft.error = {"error": response["error"]}
    elif draft.ends_with(RefusalPart):
        draft.stop = SimStopReason.REFUSAL
    else:
        draft.stop = SimStopReason.TOOL_USE if draft.has_calls() else SimStopReason.END
    if response.get("usage"):
        draft.usage = _responses_usage(response["usage"])


def _responses_usage(usage: Any) -> BilledUsage:
    details = usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    written = details.get("cache_write_tokens") or 0
    return BilledUsage(
        fresh=usage["input_tokens"] - cached - written,
        read=cached,
        written={"30m": written} if written else {},
        output=usage["output_tokens"],
        reasoning=(usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
    )


_READ_BY_API: Mapping[Api, Callable[[Any, ResponseDraft], None]] = {
    Api.ANTHROPIC: read_anthropic,
    Api.OPENAI_CHAT: read_chat_completion,
    Api.OPENAI_RESPONSES: read_response,
    Api.DEEPSEEK: read_chat_completion,
    Api.GEMINI: read_gemini,
    Api.OLLAMA: read_ollama,
}
_PARSER_BY_MEDIA_TYPE: Mapping[str, type[JsonStreamParser]] = {
    "text/event-stream": SseParser,
    "application/x-ndjson": JsonLinesParser,
}


class AnswerReader:
    """Incremental reader of one answer.

    Args:
        api: the API of the answer.
        media_type: the `Content-Type`.

    Attributes:
        draft: the answer so far.
    """

    def __init__(self, api: Api, media_type: str) -> None:
        self.draft = ResponseDraft()
        self._read = _READ_BY_API[api]
        self._parser = _PARSER_BY_MEDIA_TYPE.get(
            media_type.partition(";")[0].strip().lower(),
            DocumentParser,
        )()

    def feed(self, data: bytes, now_ms: float) -> None:
        """Read bytes.

        Args:
            data: the bytes.
            now_ms: their time, in milliseconds after the request.

        Raises:
            ValueError: the bytes are not an answer of the API.
        """
        self.draft.now_ms = now_ms
        self._read_values(self._parser.feed(data))

    def close(self) -> None:
        """Read the end.

        Raises:
            ValueError: the bytes are not an answer of the API.
        """
        self._read_values(self._parser.close())

    def _read_values(self, values: Iterator[Any]) -> None:
        for value in values:
            try:
                self._read(value, self.draft)
            except (AttributeError, KeyError, IndexError, TypeError) as error:
                raise ValueError(f"not an answer of the API: {str(value)[:80]}") from error
