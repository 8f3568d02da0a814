"""Responses through `openai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from conformance.simulator.cases import TOOL
from conformance.simulator.drivers.openai_chat import OpenAiChat, Value, call_value, raised
from conformance.simulator.observation import Counts, Raised
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai.types.responses import ParsedResponse, ResponseUsage

    from conformance.simulator.cases import Question
    from conformance.simulator.observation import Observation


_NO_STOPS = "Responses have no stop sequences"


class OpenAiResponses:
    """The synchronous client sends the whole history back, the asynchronous one names the last response."""

    name = "OpenAI Responses"
    package = "openai"
    stops: Mapping[SimStopReason, str] = {
        SimStopReason.END: "completed",
        SimStopReason.TOOL_USE: "completed",
        SimStopReason.STOP_SEQUENCE: "completed",
        SimStopReason.LENGTH: "max_output_tokens",
        SimStopReason.REFUSAL: "completed",
        SimStopReason.CONTENT_FILTER: "content_filter",
    }
    raises: Mapping[str, Raised] = OpenAiChat.raises
    gaps: Mapping[str, str] = {"error_in_200": "the SDK takes a whole document of any shape for a response"}
    lacks: Mapping[str, str] = {"stop sequence": _NO_STOPS}

    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="key-of-openai")
        self._async_client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="key-of-openai")

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        members = _members(question)
        if question.results:
            done = self._answer(question, members, type(seen)(), stream=stream)
            members["input"] = [*members["input"], *done.output, *_outputs(done, question)]
        self._answer(question, members, seen, stream=stream)

    def _answer(
        self,
        question: Question,
        members: dict[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> ParsedResponse[Any]:
        client = self._client.with_options(timeout=question.patience, max_retries=question.retries)
        if not stream:
            return _show(client.responses.parse(**members), seen)
        with client.responses.stream(**members) as events:
            for event in events:
                _grow(event, seen)
                if event.type == "response.incomplete":
                    return _show(event.response, seen)
            return _show(events.get_final_response(), seen)

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        members = _members(question)
        if question.results:
            done = await self._answer_async(question, members, type(seen)(), stream=stream)
            members |= {"input": _outputs(done, question), "previous_response_id": done.id}
        await self._answer_async(question, members, seen, stream=stream)

    async def _answer_async(
        self,
        question: Question,
        members: dict[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> ParsedResponse[Any]:
        client = self._async_client.with_options(timeout=question.patience, max_retries=question.retries)
        if not stream:
            return _show(await client.responses.parse(**members), seen)
        async with client.responses.stream(**members) as events:
            async for event in events:
                _grow(event, seen)
                if event.type == "response.incomplete":
                    return _show(event.response, seen)
            return _show(await events.get_final_response(), seen)

    def raised(self, error: Exception) -> Raised:
        return raised(error)

    async def close(self) -> None:
        self._client.close()
        await self._async_client.close()


def _members(question: Question) -> dict[str, Any]:
    members: dict[str, Any] = {
        "model": "gpt-6-sol",
        "input": [{"role": "user", "content": question.prompt}],
        "max_output_tokens": question.max_tokens,
    }
    if question.tools:
        members["tools"] = [
            {
                "type": "function",
                "name": TOOL["name"],
                "description": TOOL["description"],
                "parameters": TOOL["schema"],
                "strict": False,
            },
        ]
    if question.structured:
        members["text_format"] = Value
    if question.reasoning:
        members["reasoning"] = {"summary": "auto"}
    return members


def _outputs(done: ParsedResponse[Any], question: Question) -> list[Any]:
    calls = [item for item in done.output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": result}
        for call, result in zip(calls, question.results, strict=True)
    ]


def _grow(event: Any, seen: Observation) -> None:
    match event.type:
        case "response.output_text.delta":
            seen.text += event.delta
        case "response.refusal.delta":
            seen.refusal += event.delta
        case "response.reasoning_summary_text.delta":
            seen.reasoning += event.delta


def _show(done: Any, seen: Observation) -> ParsedResponse[Any]:
    """Note what the SDK has put together; what was shown before has to be the same."""
    texts, refusals, thoughts = [], [], []
    seen.calls = []
    for item in done.output:
        if item.type == "function_call":
            seen.calls.append((item.name, call_value(item.arguments)))
        elif item.type == "reasoning":
            thoughts += [part.text for part in item.summary]
        else:
            texts += [part.text for part in item.content if part.type == "output_text"]
            refusals += [part.refusal for part in item.content if part.type == "refusal"]
    seen.text, seen.refusal, seen.reasoning = (
        _same(before, "".join(parts))
        for before, parts in (
            (seen.text, texts),
            (seen.refusal, refusals),
            (seen.reasoning, thoughts),
        )
    )
    seen.stop = done.incomplete_details.reason if done.incomplete_details else done.status
    if done.usage is not None:
        seen.counts = _counts(done.usage)
    parsed = getattr(done, "output_parsed", None)
    if parsed is not None:
        seen.parsed = parsed.model_dump()
    response: ParsedResponse[Any] = done
    return response


def _same(streamed: str, whole: str) -> str:
    return whole if streamed in {"", whole} else f"{streamed}, then {whole}"


def _counts(usage: ResponseUsage) -> Counts:
    return Counts(
        input=usage.input_tokens,
        cached=usage.input_tokens_details.cached_tokens,
        output=usage.output_tokens,
        reasoning=usage.output_tokens_details.reasoning_tokens,
    )
