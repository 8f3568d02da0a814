"""Conversations with everything that speaks OpenAI's formats, at the scripted LLM over HTTP."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.config import ProviderName
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage, ChatRole, Tool, ToolResult
from peripety.gateway.types.request import CacheTTL, GenerateRequest
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, Completion
from peripety.llmsim.capture import AnsweredOutcome
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.fake_server import Reply, Request, event, upstream
from support.gateway.providers import KEY, PROVIDERS, config_of, gateway_of
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.gateway.local_gateway import LocalModelGateway
    from support.gateway.providers import Spoken


OPENAI_FORMATS = {
    ProviderName.OPENAI,
    ProviderName.OPENAI_RESPONSES,
    ProviderName.AZURE,
    ProviderName.DEEPSEEK,
    ProviderName.GENERIC,
}
SPOKEN = {spoken.name: spoken for spoken in PROVIDERS if spoken.name in OPENAI_FORMATS}
each = pytest.mark.parametrize("spoken", SPOKEN.values(), ids=str)
LONG = "All gauges are read twice. " * 600
DOCUMENT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOLS = (Tool("gauge.read", "Reads a gauge.", DOCUMENT),)
WIRE_NAME = to_wire_name("gauge.read")
CALLS = [{"tool": WIRE_NAME, "input": {"a": 1}}, {"tool": WIRE_NAME, "input": {"a": 2}}]


async def ask(gateway: LocalModelGateway, messages: Sequence[ChatMessage], **options: Any) -> Completion:
    return await gateway.generate(GenerateRequest(LONG, tuple(messages), **options))


def results(completion: Completion) -> ChatMessage:
    calls = completion.tool_calls
    return ChatMessage(
        ChatRole.USER,
        tuple(ToolResult(call.call_id, f"is {place}") for place, call in enumerate(calls)),
    )


@each
async def test_every_turn_reads_more_of_a_conversation_from_the_cache(spoken: Spoken) -> None:
    scenario = ScriptBuilder().respond_to_any({"reasoning": "hm", "text": "a " * 300}).build()
    messages: list[ChatMessage] = []
    usage = []
    with served(scenario) as server:
        async with gateway_of(spoken, server.url) as gateway:
            for number in range(6):
                messages.append(ChatMessage.user(f"{number} " * 200))
                answer = await ask(gateway, messages, conversation_id="conversations/c")
                messages.append(answer.message)
                usage.append(answer.usage)
        outcomes = [call.outcome for call in server.simulator.captured]
    read = [each.cache_read_tokens for each in usage]
    assert read[0] == 0
    assert all(earlier < later for earlier, later in pairwise(read)), read
    # The caller receives the usage that the provider billed.
    for told, outcome in zip(usage, outcomes, strict=True):
        assert isinstance(outcome, AnsweredOutcome)
        billed = outcome.usage
        assert (told.input_tokens, told.cache_read_tokens) == (billed.input, billed.read)
        assert told.cache_write_tokens == sum(billed.written.values())
        assert (told.output_tokens, told.reasoning_tokens) == (billed.output, billed.reasoning)


async def test_a_conversation_moves_from_provider_to_provider_with_its_calls() -> None:
    scenario = (
        ScriptBuilder()
        .respond_to("look", {"reasoning": "hm", "text": "I look.", "tool_calls": CALLS})
        .respond_to_any("It is 1.", tool_result="is 1")
        .build()
    )
    messages: list[ChatMessage] = []
    with served(scenario) as server:
        for spoken in (*SPOKEN.values(), *reversed(SPOKEN.values())):
            async with gateway_of(spoken, server.url) as gateway:
                messages.append(ChatMessage.user("look"))
                called = await ask(gateway, messages, tools=TOOLS)
                messages += [called.message, results(called)]
                answered = await ask(gateway, messages, tools=TOOLS)
                assert answered.text == "It is 1."
                messages.append(answered.message)


async def test_breakpoints_are_written_and_found_again() -> None:
    point = CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.FIVE_MINUTES)
    scenario = ScriptBuilder().respond_to_any("a").build()
    with served(scenario) as server:
        for name in (ProviderName.OPENAI, ProviderName.OPENAI_RESPONSES):
            providers = ProviderRegistry(config_of(SPOKEN[name], server.url, model_name="gpt-6-sol"))
            usage = []
            for text in ("u", "v"):
                provider, call = providers.select(GenerateRequest(LONG, (ChatMessage.user(text),)))
                call = replace(call, breakpoints=(point,))
                *_, end = [item async for item in provider.stream(call)]
                assert isinstance(end, AnswerFinished)
                usage.append(end.usage)
            await providers.aclose()
            assert usage[0].cache_write_tokens > 4_000
            # Another question after the same instructions: without the breakpoint nothing would be found.
            assert usage[1].cache_read_tokens > 4_000
            assert usage[1].cache_write_tokens < 10


async def test_azure_is_asked_for_a_deployment_in_a_version_that_the_configuration_names(
    tmp_path: Path,
) -> None:
    models = tmp_path / "models.toml"
    models.write_text(
        '[[model]]\nprovider = "azure"\nname = "mine"\ntraits = {api_version = "2025-04-01-preview"}\n',
    )
    lines = []

    async def answer(request: Request, reply: Reply) -> None:
        lines.append((request.line, request.headers["api-key"], "authorization" in request.headers))
        await reply.stream(event({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}))

    async with upstream(answer) as server:
        base = server.base_url.removesuffix("/v1")
        for model in ("mine", "other"):
            spoken = SPOKEN[ProviderName.AZURE]
            async with gateway_of(spoken, base, models=models, model_name=model) as gateway:
                assert (await ask(gateway, [ChatMessage.user("u")])).text == "a"
    versioned = "/openai/deployments/mine/chat/completions?api-version=2025-04-01-preview"
    assert lines == [
        (f"POST {versioned} HTTP/1.1", KEY, False),
        ("POST /openai/v1/chat/completions HTTP/1.1", KEY, False),
    ]


async def test_thoughts_are_sent_back_as_they_came() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
    call = {"type": "function_call", "call_id": "c", "name": WIRE_NAME, "arguments": '{"a":1}'}

    async def answer(request: Request, reply: Reply) -> None:
        await reply.stream(
            event({"type": "response.output_item.done", "output_index": 0, "item": item}),
            event({"type": "response.output_item.added", "output_index": 1, "item": call}),
            event({**call, "type": "response.function_call_arguments.done", "output_index": 1}),
            event({"type": "response.completed", "response": {}}),
        )

    asked = ChatMessage.user("u")
    async with upstream(answer) as server:
        spoken = SPOKEN[ProviderName.OPENAI_RESPONSES]
        base = server.base_url.removesuffix("/v1")
        async with gateway_of(spoken, base) as gateway:
            called = await ask(gateway, [asked], tools=TOOLS)
            await ask(gateway, [asked, called.message, results(called)], tools=TOOLS)
    first, second = (request.body["input"] for request in server.requests)
    assert second[: len(first)] == first
    assert second[len(first)] == item
    assert second[len(first) + 1]["arguments"] == '{"a":1}'


async def test_the_tokens_of_a_prompt_are_counted_before_it_is_sent() -> None:
    scenario = ScriptBuilder().respond_to_any("a").build()
    with served(scenario) as server:
        providers = ProviderRegistry(config_of(SPOKEN[ProviderName.OPENAI_RESPONSES], server.url))
        request = GenerateRequest(LONG, (ChatMessage.user("u"),), tools=TOOLS)
        provider, call = providers.select(request)
        counted = await provider.count_tokens(call)
        *_, end = [item async for item in provider.stream(call)]
        await providers.aclose()
    assert isinstance(end, AnswerFinished)
    assert counted == end.usage.input_tokens
