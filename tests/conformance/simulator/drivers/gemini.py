"""The Gemini API through `google-genai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google import genai
from google.genai import errors, types

from conformance.simulator.cases import SCHEMA, TOOL
from conformance.simulator.observation import Counts, Observation, Raised
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.simulator.cases import Question


_MODEL = "gemini-3.5-flash"  # wants its signatures back


class Gemini:
    """Driver of `google-genai`: every question is a chat of its own, which holds the history."""

    name = "Gemini"
    package = "google-genai"
    stops: Mapping[SimStopReason, str] = {
        SimStopReason.END: "STOP",
        SimStopReason.TOOL_USE: "STOP",
        SimStopReason.STOP_SEQUENCE: "STOP",
        SimStopReason.LENGTH: "MAX_TOKENS",
        SimStopReason.REFUSAL: "PROHIBITED_CONTENT",
        SimStopReason.CONTENT_FILTER: "SAFETY",
    }
    raises: Mapping[str, Raised] = {
        "auth_error": Raised("ClientError", 400),
        "permission_denied": Raised("ClientError", 403),
        "not_found": Raised("ClientError", 404),
        "invalid_request": Raised("ClientError", 400),
        "conflict": Raised("ClientError", 409),
        "too_large": Raised("ClientError", 400),
        "rate_limit": Raised("ClientError", 429, 7),
        "rate_limit, milliseconds": Raised("ClientError", 429, 1.5),
        "out_of_credits": Raised("ClientError", 429),
        "overloaded": Raised("ServerError", 503, 3),
        "unavailable": Raised("ServerError", 503),
        "server_error": Raised("ServerError", 500),
        "timeout": Raised("ServerError", 504),
    }
    gaps: Mapping[str, str] = {
        "empty_body": "the SDK takes it for an answer without candidates",
        "error_in_200": "the SDK takes a whole document without candidates for an answer",
        "missing_end": "a stream has no end mark but its finish reason, and the SDK does not miss it",
    }
    lacks: Mapping[str, str] = {}

    def __init__(self, url: str) -> None:
        self._client = genai.Client(api_key="key-of-gemini", http_options=types.HttpOptions(base_url=url))

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        chat = self._client.chats.create(model=_MODEL, config=_config(question))
        message: Any = question.prompt
        if question.results:
            calls = self._answer(chat, message, Observation(), stream=stream)
            message = _results(question, calls)
        self._answer(chat, message, seen, stream=stream)

    def _answer(
        self,
        chat: Any,
        message: Any,
        seen: Observation,
        *,
        stream: bool,
    ) -> list[types.FunctionCall]:
        if not stream:
            return _show(chat.send_message(message), seen)
        return [call for chunk in chat.send_message_stream(message) for call in _show(chunk, seen)]

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        chat = self._client.aio.chats.create(model=_MODEL, config=_config(question))
        message: Any = question.prompt
        if question.results:
            message = _results(
                question,
                await self._answer_async(chat, message, Observation(), stream=stream),
            )
        await self._answer_async(chat, message, seen, stream=stream)

    async def _answer_async(
        self,
        chat: Any,
        message: Any,
        seen: Observation,
        *,
        stream: bool,
    ) -> list[types.FunctionCall]:
        if not stream:
            return _show(await chat.send_message(message), seen)
        chunks = await chat.send_message_stream(message)
        return [call async for chunk in chunks for call in _show(chunk, seen)]

    def raised(self, error: Exception) -> Raised:
        name = type(error).__name__
        if not isinstance(error, errors.APIError):
            return Raised(name)
        body = error.details.get("error", {}) if isinstance(error.details, dict) else {}
        delays = [each["retryDelay"] for each in body.get("details", ()) if "retryDelay" in each]
        return Raised(name, error.code, float(delays[0].removesuffix("s")) if delays else None)

    async def close(self) -> None:
        self._client.close()
        await self._client.aio.aclose()


def _config(question: Question) -> types.GenerateContentConfig:
    declaration = types.FunctionDeclaration(
        name=TOOL["name"],
        description=TOOL["description"],
        parameters_json_schema=TOOL["schema"],
    )
    schema = SCHEMA if question.structured else None
    retrying = types.HttpRetryOptions(
        attempts=question.retries + 1,
        initial_delay=0.01,
        max_delay=0.01,
        jitter=0.01,
    )
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declaration])] if question.tools else None,
        max_output_tokens=question.max_tokens,
        stop_sequences=list(question.stop) or None,
        thinking_config=types.ThinkingConfig(include_thoughts=True) if question.reasoning else None,
        response_mime_type="application/json" if schema else None,
        response_json_schema=schema,
        http_options=types.HttpOptions(timeout=int(question.patience * 1000), retry_options=retrying),
    )


def _results(question: Question, calls: list[types.FunctionCall]) -> list[types.Part]:
    return [
        types.Part(
            function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": result}),
        )
        for call, result in zip(calls, question.results, strict=True)
    ]


def _show(response: types.GenerateContentResponse, seen: Observation) -> list[types.FunctionCall]:
    """Note what a response or a chunk holds, and give back the calls in it."""
    calls = []
    for candidate in response.candidates or ():
        if candidate.finish_reason:
            seen.stop = candidate.finish_reason.value
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.function_call:
                calls.append(part.function_call)
            elif part.thought:
                seen.reasoning += part.text or ""
            else:
                seen.text += part.text or ""
    seen.calls += [(call.name or "", call.args) for call in calls]
    seen.parsed = response.parsed
    if response.usage_metadata:
        seen.counts = _counts(response.usage_metadata)
    return calls


def _counts(usage: types.GenerateContentResponseUsageMetadata) -> Counts:
    thoughts = usage.thoughts_token_count or 0
    return Counts(
        input=usage.prompt_token_count,
        cached=usage.cached_content_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        reasoning=thoughts,
    )
