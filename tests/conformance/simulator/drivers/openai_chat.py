"""Chat Completions through `openai`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import openai
from pydantic import BaseModel

from conformance.simulator.cases import TOOL
from conformance.simulator.observation import Counts, Raised
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai.types.chat import ChatCompletionChunk
    from openai.types.completion_usage import CompletionUsage

    from conformance.simulator.cases import Question
    from conformance.simulator.observation import Observation


class Value(BaseModel):
    """Value of a structured answer."""

    label: str
    amounts: list[int]


class OpenAiChat:
    """Only structured answers are read by the SDK's helpers, which take a cut answer for an error."""

    name = "OpenAI Chat"
    package = "openai"
    stops: Mapping[SimStopReason, str] = {
        SimStopReason.END: "stop",
        SimStopReason.TOOL_USE: "tool_calls",
        SimStopReason.STOP_SEQUENCE: "stop",
        SimStopReason.LENGTH: "length",
        SimStopReason.REFUSAL: "stop",
        SimStopReason.CONTENT_FILTER: "content_filter",
    }
    raises: Mapping[str, Raised] = {
        "auth_error": Raised("AuthenticationError", 401),
        "permission_denied": Raised("PermissionDeniedError", 403),
        "not_found": Raised("NotFoundError", 404),
        "invalid_request": Raised("BadRequestError", 400),
        "conflict": Raised("ConflictError", 409),
        "too_large": Raised("APIStatusError", 413),
        "rate_limit": Raised("RateLimitError", 429, 7),
        "rate_limit, milliseconds": Raised("RateLimitError", 429, 1.5),
        "out_of_credits": Raised("RateLimitError", 429),
        "overloaded": Raised("InternalServerError", 503, 3),
        "unavailable": Raised("InternalServerError", 503),
        "server_error": Raised("InternalServerError", 500),
        "timeout": Raised("InternalServerError", 504),
    }
    gaps: Mapping[str, str] = {
        "empty_body": "the SDK takes it for a stream without chunks",
        "missing_end": "the SDK does not miss `[DONE]`",
        "reasoning": "Chat Completions return the number of reasoning tokens, not their text",
    }
    lacks: Mapping[str, str] = {}

    model = "gpt-6-sol"
    prefix = "/v1"

    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=url + self.prefix, api_key="key-of-openai")
        self._async_client = openai.AsyncOpenAI(base_url=url + self.prefix, api_key="key-of-openai")

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        members = self.members(question)
        if question.results:
            done = self._answer(question, members, type(seen)(), stream=stream)
            members["messages"] += [done.message, *done.results(question)]
        self._answer(question, members, seen, stream=stream)

    def _answer(
        self,
        question: Question,
        members: dict[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> Growing:
        completions = self._client.with_options(**_patience(question)).chat.completions
        growing = Growing(seen)
        if not stream and "response_format" in members:
            growing.take(completions.parse(**members))
        elif not stream:
            growing.take(completions.create(**members))
        elif "response_format" in members:
            with completions.stream(**members, **_STREAMED) as events:
                for event in events:
                    growing.note(event)
                growing.take(events.get_final_completion())
        else:
            for chunk in completions.create(stream=True, **members, **_STREAMED):
                growing.add(chunk)
        return growing

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        members = self.members(question)
        if question.results:
            done = await self._answer_async(question, members, type(seen)(), stream=stream)
            members["messages"] += [done.message, *done.results(question)]
        await self._answer_async(question, members, seen, stream=stream)

    async def _answer_async(
        self,
        question: Question,
        members: dict[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> Growing:
        completions = self._async_client.with_options(**_patience(question)).chat.completions
        growing = Growing(seen)
        if not stream and "response_format" in members:
            growing.take(await completions.parse(**members))
        elif not stream:
            growing.take(await completions.create(**members))
        elif "response_format" in members:
            async with completions.stream(**members, **_STREAMED) as events:
                async for event in events:
                    growing.note(event)
                growing.take(await events.get_final_completion())
        else:
            async for chunk in await completions.create(stream=True, **members, **_STREAMED):
                growing.add(chunk)
        return growing

    def members(self, question: Question) -> dict[str, Any]:
        """Return all members of the request."""
        function = {"name": TOOL["name"], "description": TOOL["description"], "parameters": TOOL["schema"]}
        members: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "max_completion_tokens": question.max_tokens,
        }
        if question.tools:
            members["tools"] = [{"type": "function", "function": function}]
        if question.stop:
            members["stop"] = list(question.stop)
        if question.structured:
            members["response_format"] = Value
        return members

    def raised(self, error: Exception) -> Raised:
        return raised(error)

    async def close(self) -> None:
        self._client.close()
        await self._async_client.close()


class Growing:
    """An answer while it arrives.

    Attributes:
        message: the model's message, as its user sends it back.
    """

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._calls: list[dict[str, Any]] = []
        self.message: Any = {"role": "assistant"}

    def results(self, question: Question) -> list[dict[str, Any]]:
        """Return the results of the called tools."""
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(self._calls, question.results, strict=True)
        ]

    def take(self, done: Any) -> None:
        """Note a whole answer."""
        choice, seen = done.choices[0], self._seen
        self.message = message = choice.message
        seen.text, seen.refusal = message.content or "", message.refusal or ""
        seen.reasoning = _thoughts(message)
        seen.stop = choice.finish_reason
        self._calls = [call.model_dump() for call in message.tool_calls or ()]
        self._show_calls()
        if done.usage is not None:
            seen.counts = _counts(done.usage)
        parsed = getattr(message, "parsed", None)
        if parsed is not None:
            seen.parsed = parsed.model_dump()

    def note(self, event: Any) -> None:
        """Record an event of the SDK's own helper."""
        if event.type == "chunk":
            self.add(event.chunk)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Note a chunk."""
        seen = self._seen
        for choice in chunk.choices:
            delta = choice.delta
            seen.text += delta.content or ""
            seen.refusal += delta.refusal or ""
            seen.reasoning += _thoughts(delta)
            for call in delta.tool_calls or ():
                if call.id is not None:
                    self._calls.append(call.model_dump(exclude={"index"}))
                elif call.function is not None:
                    self._calls[call.index]["function"]["arguments"] += call.function.arguments or ""
            if choice.finish_reason is not None:
                seen.stop = choice.finish_reason
        if chunk.usage is not None:
            seen.counts = _counts(chunk.usage)
        self.message |= {"content": seen.text, "tool_calls": self._calls}
        if seen.reasoning:
            self.message["reasoning_content"] = seen.reasoning
        self._show_calls()

    def _show_calls(self) -> None:
        functions = [call["function"] for call in self._calls]
        self._seen.calls = [(each["name"], call_value(each["arguments"])) for each in functions]


_STREAMED: dict[str, Any] = {"stream_options": {"include_usage": True}}


def raised(error: Exception) -> Raised:
    """Return the details of an exception that the user of this SDK can read."""
    name = type(error).__name__
    if not isinstance(error, openai.APIStatusError):
        return Raised(name)
    headers = error.response.headers
    if "retry-after-ms" in headers:
        return Raised(name, error.status_code, float(headers["retry-after-ms"]) / 1000)
    seconds = headers.get("retry-after")
    return Raised(name, error.status_code, None if seconds is None else float(seconds))


def call_value(arguments: str) -> Any:
    """Return the arguments of a call; invalid JSON is returned as text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _patience(question: Question) -> dict[Literal["timeout", "max_retries"], Any]:
    return {"timeout": question.patience, "max_retries": question.retries}


def _thoughts(message: Any) -> str:
    """Return the reasoning, which the SDK stores as an unknown field."""
    return getattr(message, "reasoning_content", None) or ""


def _counts(usage: CompletionUsage) -> Counts:
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    return Counts(
        input=usage.prompt_tokens,
        cached=read.cached_tokens if read else None,
        output=usage.completion_tokens,
        reasoning=written.reasoning_tokens if written else None,
    )
