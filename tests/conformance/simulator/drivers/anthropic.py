"""The Messages API through `anthropic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
from pydantic import BaseModel

from conformance.simulator.cases import TOOL
from conformance.simulator.observation import Counts, Observation, Raised
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic.types import ParsedMessage, Usage

    from conformance.simulator.cases import Question


class Labelled(BaseModel):
    """Model of `SCHEMA` for the SDK's helper."""

    label: str
    amounts: list[int]


class Anthropic:
    """Streams are read by the SDK's own accumulator, structured answers by its parser."""

    name = "Anthropic"
    package = "anthropic"
    stops: Mapping[SimStopReason, str] = {
        SimStopReason.END: "end_turn",
        SimStopReason.TOOL_USE: "tool_use",
        SimStopReason.LENGTH: "max_tokens",
        SimStopReason.STOP_SEQUENCE: "stop_sequence",
        SimStopReason.REFUSAL: "refusal",
        SimStopReason.CONTENT_FILTER: "refusal",
    }
    raises: Mapping[str, Raised] = {
        "auth_error": Raised("AuthenticationError", 401),
        "permission_denied": Raised("PermissionDeniedError", 403),
        "not_found": Raised("NotFoundError", 404),
        "invalid_request": Raised("BadRequestError", 400),
        "conflict": Raised("ConflictError", 409),
        "too_large": Raised("ContentTooLargeError", 413),
        "rate_limit": Raised("RateLimitError", 429, 7),
        "rate_limit, milliseconds": Raised("RateLimitError", 429, 1.5),
        "out_of_credits": Raised("PaymentRequiredError", 402),
        "overloaded": Raised("OverloadedError", 529, 3),
        "unavailable": Raised("ServiceUnavailableError", 503),
        "server_error": Raised("InternalServerError", 500),
        "timeout": Raised("GatewayTimeoutError", 504),
    }
    gaps: Mapping[str, str] = {"missing_end": "the SDK does not miss `message_stop`"}
    lacks: Mapping[str, str] = {}

    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(api_key="key-of-anthropic", base_url=url)
        self._async = anthropic.AsyncAnthropic(api_key="key-of-anthropic", base_url=url)

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        client = self._client.with_options(max_retries=question.retries, timeout=question.patience)
        request = _request(question)
        if question.results:
            _give_back(request, self._answer(client, request, Observation(), stream=stream), question)
        self._answer(client, request, seen, stream=stream)

    def _answer(
        self,
        client: anthropic.Anthropic,
        request: Mapping[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> ParsedMessage[Any]:
        if not stream:
            return _show(client.messages.parse(**request), seen)
        with client.messages.stream(**request) as events:
            for _ in events:
                _show(events.current_message_snapshot, seen)
            return events.get_final_message()

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        client = self._async.with_options(max_retries=question.retries, timeout=question.patience)
        request = _request(question)
        if question.results:
            answer = await self._answer_async(client, request, Observation(), stream=stream)
            _give_back(request, answer, question)
        await self._answer_async(client, request, seen, stream=stream)

    async def _answer_async(
        self,
        client: anthropic.AsyncAnthropic,
        request: Mapping[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> ParsedMessage[Any]:
        if not stream:
            return _show(await client.messages.parse(**request), seen)
        async with client.messages.stream(**request) as events:
            async for _ in events:
                _show(events.current_message_snapshot, seen)
            return await events.get_final_message()

    def raised(self, error: Exception) -> Raised:
        name = type(error).__name__
        if not isinstance(error, anthropic.APIStatusError):
            return Raised(name)
        headers = error.response.headers
        later = None
        if "retry-after-ms" in headers:
            later = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" in headers:
            later = float(headers["retry-after"])
        return Raised(name, error.status_code, later)

    async def close(self) -> None:
        self._client.close()
        await self._async.close()


def _request(question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": "claude-opus-5-5",
        "max_tokens": question.max_tokens,
        "messages": [{"role": "user", "content": question.prompt}],
    }
    if question.stop:
        request["stop_sequences"] = question.stop
    if question.reasoning:
        request["thinking"] = {"type": "adaptive", "display": "summarized"}
    if question.tools:
        request["tools"] = [
            {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["schema"]},
        ]
    if question.structured:
        request["output_format"] = Labelled
    return request


def _give_back(request: dict[str, Any], answer: ParsedMessage[Any], question: Question) -> None:
    """Add what was answered, as the SDK gave it, and the results of its calls."""
    calls = [block for block in answer.content if block.type == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": result}
        for call, result in zip(calls, question.results, strict=True)
    ]
    request["messages"] += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": results},
    ]


def _show(message: ParsedMessage[Any], seen: Observation) -> ParsedMessage[Any]:
    """Note what there is of a message."""
    seen.text = "".join(block.text for block in message.content if block.type == "text")
    seen.calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    seen.reasoning = "".join(block.thinking for block in message.content if block.type == "thinking")
    seen.stop = message.stop_reason
    if message.usage:
        seen.counts = _counts(message.usage)
    if message.stop_details:
        seen.refusal = message.stop_details.explanation or ""
    if message.parsed_output is not None:
        seen.parsed = message.parsed_output.model_dump()
    return message


def _counts(usage: Usage) -> Counts:
    cached = usage.cache_read_input_tokens
    written = usage.cache_creation_input_tokens
    return Counts(
        input=usage.input_tokens + (cached or 0) + (written or 0),
        cached=cached,
        output=usage.output_tokens,
        reasoning=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else None,
    )
