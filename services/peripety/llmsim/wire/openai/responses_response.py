"""Response writer: complete, or as stream events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.models import count_tokens
from peripety.llmsim.types import (
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimStopReason,
    StreamFrame,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire import base
from peripety.llmsim.wire.base import compact_json
from peripety.llmsim.wire.openai.chat_response import actual_service_tier, obfuscation_padding, part_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.llmsim.types import BilledUsage, ReplyPart, SimReply, SimRequest


_INCOMPLETE = {SimStopReason.LENGTH: "max_output_tokens", SimStopReason.CONTENT_FILTER: "content_filter"}


@dataclass(frozen=True, slots=True)
class _Event:
    """An event without its sequence number."""

    name: str
    data: Mapping[str, Any]
    tag: FrameTag
    tokens: int = 0


def response_id(reply: SimReply) -> str:
    """Return the response id of an answer."""
    return f"resp_{reply.id}"


def response_event(name: str, number: int, data: Mapping[str, Any]) -> bytes:
    """Return a stream event."""
    return base.sse_event(compact_json({"type": name, "sequence_number": number, **data}), name)


class ResponseWriter:
    """An answer of the Responses API."""

    def __init__(self, request: SimRequest, reply: SimReply) -> None:
        self._request = request
        self._reply = reply
        self._shows_summary = request.options["response"]["reasoning"]["summary"] is not None
        self._cut_off_reason = None if request.options["prewarm"] else _INCOMPLETE.get(reply.stop)

    def document(self) -> dict[str, Any]:
        """Return the answer as one JSON value."""
        tier = actual_service_tier(self._request.options["response"]["service_tier"])
        return {
            **self._response_object("completed" if self._cut_off_reason is None else "incomplete"),
            "completed_at": int(self._reply.created) if self._cut_off_reason is None else None,
            "incomplete_details": None if self._cut_off_reason is None else {"reason": self._cut_off_reason},
            "output": [self._item(at, part) for at, part in enumerate(self._reply.parts)],
            "service_tier": tier,
            "usage": _usage_value(self._reply.usage),
        }

    def frames(self) -> Iterator[StreamFrame[bytes]]:
        """Yield the answer as a stream."""
        pad = self._request.options["include_obfuscation"]
        for number, each in enumerate(self._events()):
            data = each.data
            if pad and "delta" in data:
                data = {**data, "obfuscation": obfuscation_padding(data["delta"].encode())}
            yield StreamFrame(response_event(each.name, number, data), each.tag, each.tokens)

    def _response_object(self, status: str) -> dict[str, Any]:
        """Return a response object without output."""
        return {
            "id": response_id(self._reply),
            "object": "response",
            "created_at": int(self._reply.created),
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": self._reply.model,
            "output": [],
            "usage": None,
            **self._request.options["response"],
        }

    # ---- items

    def _id(self, prefix: str, at: int) -> str:
        return f"{prefix}_{self._reply.id}{at:02}"

    def _item(self, at: int, part: ReplyPart) -> dict[str, Any]:
        """Return a complete output item."""
        last = at == len(self._reply.parts) - 1
        return self._started_item(at, part) | self._final_members(
            part,
            "incomplete" if self._cut_off_reason and last else "completed",
        )

    def _started_item(self, at: int, part: ReplyPart) -> dict[str, Any]:
        """Return an output item at its start."""
        if isinstance(part, ReasoningPart):
            return {"id": self._id("rs", at), "type": "reasoning", "summary": []}
        if isinstance(part, ToolUsePart):
            return {
                "id": self._id("fc", at),
                "type": "function_call",
                "status": "in_progress",
                "arguments": "",
                "call_id": f"call_{part.id}",
                "name": part.name,
            }
        return {
            "id": self._id("msg", at),
            "type": "message",
            "status": "in_progress",
            "content": [],
            "role": "assistant",
        }

    def _final_members(self, part: ReplyPart, status: str) -> dict[str, Any]:
        """Return the members that an item has only at its end."""
        if isinstance(part, ReasoningPart):
            summary = [_summary_part(part.text)] if self._shows_summary else []
            return {"summary": summary, "encrypted_content": part.signature}
        if isinstance(part, ToolUsePart):
            return {"status": status, "arguments": part.arguments_json}
        return {"status": status, "content": [_content_part(part, part.text)]}

    # ---- events

    def _events(self) -> Iterator[_Event]:
        begun = {"response": self._response_object("in_progress")}
        yield _Event("response.created", begun, FrameTag.START)
        yield _Event("response.in_progress", begun, FrameTag.START)
        for at, part in enumerate(self._reply.parts):
            item = self._item(at, part)
            place = {"item_id": item["id"], "output_index": at}
            tokens = count_tokens(part.name) if isinstance(part, ToolUsePart) else 0
            yield _Event(
                "response.output_item.added",
                {"output_index": at, "item": self._started_item(at, part)},
                FrameTag.PART,
                tokens,
            )
            if isinstance(part, ToolUsePart):
                yield from _call_events(part, place)
            elif isinstance(part, ReasoningPart):
                # Hidden reasoning takes time, too.
                hidden = 0 if self._shows_summary else count_tokens(part.text)
                if self._shows_summary:
                    yield from _reasoning_events(part, place)
                yield _Event(
                    "response.output_item.done",
                    {"output_index": at, "item": item},
                    FrameTag.PART,
                    hidden,
                )
                continue
            else:
                yield from _prose_events(part, place)
            yield _Event("response.output_item.done", {"output_index": at, "item": item}, FrameTag.PART)
        end = "response.completed" if self._cut_off_reason is None else "response.incomplete"
        yield _Event(end, {"response": self.document()}, FrameTag.END)


def _prose_events(part: TextPart | RefusalPart, place: Mapping[str, Any]) -> Iterator[_Event]:
    place = {**place, "content_index": 0}
    yield _Event("response.content_part.added", {**place, "part": _content_part(part, "")}, FrameTag.PART)
    refused = isinstance(part, RefusalPart)
    name = "response.refusal" if refused else "response.output_text"
    extra: dict[str, Any] = {} if refused else {"logprobs": []}
    for piece, tokens in part_chunks(part):
        yield _Event(f"{name}.delta", {**place, "delta": piece, **extra}, FrameTag.TEXT, tokens)
    whole = {"refusal" if refused else "text": part.text}
    yield _Event(f"{name}.done", {**place, **whole, **extra}, FrameTag.PART)
    yield _Event(
        "response.content_part.done",
        {**place, "part": _content_part(part, part.text)},
        FrameTag.PART,
    )


def _reasoning_events(part: ReasoningPart, place: Mapping[str, Any]) -> Iterator[_Event]:
    name = "response.reasoning_summary"
    place = {**place, "summary_index": 0}
    yield _Event(f"{name}_part.added", {**place, "part": _summary_part("")}, FrameTag.PART)
    for piece, tokens in part_chunks(part):
        yield _Event(f"{name}_text.delta", {**place, "delta": piece}, FrameTag.REASONING, tokens)
    yield _Event(f"{name}_text.done", {**place, "text": part.text}, FrameTag.PART)
    yield _Event(f"{name}_part.done", {**place, "part": _summary_part(part.text)}, FrameTag.PART)


def _call_events(part: ToolUsePart, place: Mapping[str, Any]) -> Iterator[_Event]:
    name = "response.function_call_arguments"
    for piece, tokens in part_chunks(part):
        yield _Event(f"{name}.delta", {**place, "delta": piece}, FrameTag.ARGUMENTS, tokens)
    yield _Event(
        f"{name}.done",
        {**place, "name": part.name, "arguments": part.arguments_json},
        FrameTag.PART,
    )


def _summary_part(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def _content_part(part: TextPart | RefusalPart, text: str) -> dict[str, Any]:
    if isinstance(part, RefusalPart):
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _usage_value(usage: BilledUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.read,
            "cache_write_tokens": sum(usage.written.values()),
            "cache_write_tokens_details": {
                "ttl_30m_tokens": usage.written.get("30m", 0),
                "ttl_12h_tokens": usage.written.get("12h", 0),
            },
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
