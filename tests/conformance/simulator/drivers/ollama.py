"""Ollama's own API through `ollama`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ollama

from conformance.simulator.cases import SCHEMA, TOOL
from conformance.simulator.observation import Counts, Observation, Raised
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.simulator.cases import Question


class Ollama:
    """The SDK's time-out is its client's: there is one client for each."""

    name = "Ollama"
    package = "ollama"
    stops: Mapping[SimStopReason, str] = {
        SimStopReason.END: "stop",
        SimStopReason.TOOL_USE: "stop",
        SimStopReason.STOP_SEQUENCE: "stop",
        SimStopReason.LENGTH: "length",
        SimStopReason.REFUSAL: "stop",
        SimStopReason.CONTENT_FILTER: "stop",
    }
    raises: Mapping[str, Raised] = {
        "auth_error": Raised("ResponseError", 401),
        "permission_denied": Raised("ResponseError", 403),
        "not_found": Raised("ResponseError", 404),
        "invalid_request": Raised("ResponseError", 400),
        "conflict": Raised("ResponseError", 409),
        "too_large": Raised("ResponseError", 413),
        "rate_limit": Raised("ResponseError", 429),
        "rate_limit, milliseconds": Raised("ResponseError", 429),
        "out_of_credits": Raised("ResponseError", 402),
        "overloaded": Raised("ResponseError", 503),
        "unavailable": Raised("ResponseError", 503),
        "server_error": Raised("ResponseError", 500),
        "timeout": Raised("ResponseError", 504),
    }
    gaps: Mapping[str, str] = {
        "empty_body": "the SDK takes a stream without lines for an answer without words",
        "missing_end": "the SDK does not miss the line with `done`",
    }
    lacks: Mapping[str, str] = {"retry": "the SDK does not retry"}

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[float, ollama.Client] = {}
        self._async_clients: dict[float, ollama.AsyncClient] = {}

    def ask(self, question: Question, seen: Observation, *, stream: bool) -> None:
        request = _request(question)
        patience = question.patience
        if patience not in self._clients:
            self._clients[patience] = ollama.Client(self._url, timeout=patience, trust_env=False)
        client = self._clients[patience]
        if question.results:
            _give_back(request, self._answer(client, request, Observation(), stream=stream), question)
        self._answer(client, request, seen, stream=stream)

    def _answer(
        self,
        client: ollama.Client,
        request: Mapping[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> list[ollama.Message]:
        if not stream:
            return [_show(client.chat(**request), seen, request["format"])]
        return [_show(line, seen) for line in client.chat(**request, stream=True)]

    async def ask_async(self, question: Question, seen: Observation, *, stream: bool) -> None:
        request = _request(question)
        patience = question.patience
        if patience not in self._async_clients:
            self._async_clients[patience] = ollama.AsyncClient(self._url, timeout=patience, trust_env=False)
        client = self._async_clients[patience]
        if question.results:
            answer = await self._answer_async(client, request, Observation(), stream=stream)
            _give_back(request, answer, question)
        await self._answer_async(client, request, seen, stream=stream)

    async def _answer_async(
        self,
        client: ollama.AsyncClient,
        request: Mapping[str, Any],
        seen: Observation,
        *,
        stream: bool,
    ) -> list[ollama.Message]:
        if not stream:
            return [_show(await client.chat(**request), seen, request["format"])]
        return [_show(line, seen) async for line in await client.chat(**request, stream=True)]

    def raised(self, error: Exception) -> Raised:
        if not isinstance(error, ollama.ResponseError):
            return Raised(type(error).__name__)
        return Raised("ResponseError", None if error.status_code == -1 else error.status_code)

    async def close(self) -> None:
        for client in self._clients.values():
            client.close()  # type: ignore[no-untyped-call]
        for async_client in self._async_clients.values():
            await async_client.close()  # type: ignore[no-untyped-call]


def _request(question: Question) -> dict[str, Any]:
    declaration = {
        "type": "function",
        "function": {
            "name": TOOL["name"],
            "description": TOOL["description"],
            "parameters": TOOL["schema"],
        },
    }
    return {
        "model": "llama3",
        "messages": [{"role": "user", "content": question.prompt}],
        "tools": [declaration] if question.tools else None,
        "think": question.reasoning,
        "format": SCHEMA if question.structured else None,
        "options": {"num_predict": question.max_tokens, "stop": list(question.stop)},
    }


def _give_back(request: dict[str, Any], answer: list[ollama.Message], question: Question) -> None:
    """Add what was answered, piece by piece as the SDK gave it, and the results of its calls."""
    names = [call.function.name for message in answer for call in message.tool_calls or ()]
    request["messages"] += [
        *answer,
        *(
            {"role": "tool", "content": result, "tool_name": name}
            for name, result in zip(names, question.results, strict=True)
        ),
    ]


def _show(line: ollama.ChatResponse, seen: Observation, schema: object = None) -> ollama.Message:
    """Note what a line adds; the SDK leaves it to its user to read a structured answer."""
    message = line.message
    seen.text += message.content or ""
    seen.reasoning += message.thinking or ""
    seen.calls += [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    seen.stop = line.done_reason
    seen.parsed = json.loads(seen.text) if schema else None
    seen.counts = Counts(line.prompt_eval_count, None, line.eval_count, None)
    return message
