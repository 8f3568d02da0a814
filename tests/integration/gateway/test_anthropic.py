"""Anthropic's models at the scripted LLM, which refuses what they refuse and caches as they do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import FailedPreconditionError, InvalidArgumentError, PeripetyError
from peripety.gateway.providers.anthropic.response_stream import MessagesWire
from peripety.gateway.providers.http_provider import HttpProvider
from peripety.gateway.providers.provider import AnswerFinished, Endpoint
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Tool,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import CacheTTL, GenerateRequest, ResponseSchema
from peripety.gateway.types.response import (
    CacheBlock,
    CacheBreakpoint,
    SchemaMethod,
    StopReason,
    ToolCallDelta,
)
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.providers import PROVIDERS, config_of, gateway_of
from support.gateway.requests import call_of
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from peripety.gateway.types.response import Usage
    from peripety.llmsim.script.types import Script


ANTHROPIC = PROVIDERS[0]
NEWEST = "claude-opus-5-5"
OLDER = "claude-opus-4-5"
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}, strict=True)
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}},
    "required": ["a"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}


def scenario(*responses: str | dict[str, Any]) -> Script:
    """Return a script that gives these answers in this order to any messages."""
    first, *others = responses
    builder = ScriptBuilder().respond_to_any(first)
    for each in others:
        builder.then(each)
    return builder.build()


async def test_every_turn_of_a_conversation_with_tools_and_thoughts_is_taken() -> None:
    calling = {
        "reasoning": "hm",
        "text": "looking",
        "tool_calls": [{"tool": "look", "input": {"at": "x"}}, {"tool": "look", "input": {"at": "y"}}],
    }
    request = GenerateRequest("s", (ChatMessage.user("a"),), tools=(LOOK,), tool_choice=ToolChoice())
    with served(scenario(calling, {"reasoning": "so", "text": "seen"}, "brief")) as simulator:
        async with gateway_of(ANTHROPIC, simulator.url) as gateway:
            events = [event async for event in gateway.stream(request)]
            assert len([event for event in events if isinstance(event, ToolCallDelta) and event.name]) == 2
            first = await gateway.generate(request)
            results = tuple(ToolResult(call.call_id, "z", is_error=True) for call in first.tool_calls)
            said = (*request.messages, first.message, ChatMessage(ChatRole.USER, results))
            second = await gateway.generate(replace(request, messages=said))
            said = (*said, second.message, ChatMessage.system("be brief"), ChatMessage.user("b"))
            third = await gateway.generate(replace(request, messages=said))
    assert [first.stop_reason, second.stop_reason, third.stop_reason] == [
        StopReason.TOOL_USE,
        StopReason.END,
        StopReason.END,
    ]
    assert third.text == "brief"
    assert first.usage.reasoning_tokens > 0
    assert any(isinstance(part, ProviderState) for part in first.message.parts)


@pytest.mark.parametrize(
    ("model", "document", "response", "method"),
    [
        (NEWEST, CLOSED, {"json": {"a": 2}}, SchemaMethod.NATIVE),
        (OLDER, OPEN, {"tool_calls": [{"tool": ANSWER_TOOL, "input": {"a": 2}}]}, SchemaMethod.TOOL),
        (NEWEST, OPEN, 'Here: {"a": 2}', SchemaMethod.EXTRACTION),
    ],
)
async def test_a_structured_answer_is_had_by_the_method_that_the_model_allows(
    model: str,
    document: dict[str, Any],
    response: Any,
    method: SchemaMethod,
) -> None:
    request = GenerateRequest(
        "s",
        (ChatMessage.user("a"),),
        ResponseSchema("thing", document),
        f"anthropic/{model}",
    )
    with served(scenario(response)) as simulator:
        async with gateway_of(ANTHROPIC, simulator.url) as gateway:
            completion = await gateway.generate(request)
    assert (completion.value, completion.stop_reason, completion.repaired) == (
        {"a": 2},
        StopReason.END,
        False,
    )
    assert completion.tool_calls == ()
    assert completion.schema_report is not None
    assert completion.schema_report.method is method


async def test_a_demanded_tool_is_called_by_a_model_that_would_think_first() -> None:
    choice = ToolChoice(ToolChoiceMode.NAMED, "look")
    request = GenerateRequest(
        "s",
        (ChatMessage.user("a"),),
        model="anthropic/claude-opus-5",
        tools=(LOOK,),
        tool_choice=choice,
    )
    calling = {"tool_calls": [{"tool": "look", "input": {"at": "x"}}]}
    with served(scenario(calling)) as simulator:
        async with gateway_of(ANTHROPIC, simulator.url) as gateway:
            completion = await gateway.generate(request)
            with pytest.raises(InvalidArgumentError, match="tool_choice"):
                await gateway.generate(replace(request, model=f"anthropic/{NEWEST}"))
    assert [call.arguments for call in completion.tool_calls] == ['{"at":"x"}']


async def test_what_was_said_before_is_read_from_the_cache() -> None:
    system, said = "s " * 6_000, [ChatMessage.user("a " * 3_000)]
    usages: list[Usage] = []
    with served(scenario(*["b"] * 3)) as simulator:
        config = config_of(ANTHROPIC, simulator.url)
        provider, _ = ProviderRegistry(config).select(GenerateRequest(None, tuple(said)))
        for turn in range(3):
            marked = (
                CacheBreakpoint(CacheBlock.TOOLS, CacheTTL.ONE_HOUR),
                CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.ONE_HOUR),
                CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, len(said) - 1),
            )
            request = GenerateRequest(system, tuple(said), tools=(LOOK,))
            call = call_of(request, NEWEST, "anthropic", marked)
            counted = await provider.count_tokens(call)
            finished = [event async for event in provider.stream(call)][-1]
            assert isinstance(finished, AnswerFinished)
            assert counted == finished.usage.input_tokens
            usages.append(finished.usage)
            said += [ChatMessage(ChatRole.ASSISTANT, finished.parts), ChatMessage.user(f"more {turn}")]
        await provider.aclose()
    first, second, third = usages
    assert (first.cache_read_tokens, first.cache_write_tokens) == (0, first.input_tokens)
    assert 0 < first.long_cache_write_tokens < first.cache_write_tokens
    for before, after in ((first, second), (second, third)):
        assert after.cache_read_tokens == before.input_tokens
        assert after.cache_write_tokens == after.input_tokens - before.input_tokens
        assert after.long_cache_write_tokens == 0


async def test_a_refusal_says_why() -> None:
    request = GenerateRequest("s", (ChatMessage.user("a"),))
    with served(scenario({"refusal": "no"})) as simulator:
        async with gateway_of(ANTHROPIC, simulator.url) as gateway:
            completion = await gateway.generate(request)
            assert (completion.stop_reason, completion.text) == (StopReason.REFUSAL, "no")
            with pytest.raises(FailedPreconditionError) as caught:
                await gateway.generate(replace(request, schema=ResponseSchema("thing", CLOSED)))
    assert caught.value.code == "ANSWER_REFUSED"


async def test_tokens_are_counted_or_it_is_said_why_not() -> None:
    with served(scenario("b")) as simulator:
        provider = HttpProvider(Endpoint("anthropic", simulator.url), MessagesWire())
        try:
            assert (
                await provider.count_tokens(
                    call_of(GenerateRequest("s" * 40, (ChatMessage.user("a" * 40),)), NEWEST, "anthropic"),
                )
                == 20
            )
            with pytest.raises(PeripetyError) as caught:
                await provider.count_tokens(call_of(GenerateRequest("s", ()), NEWEST, "anthropic"))
        finally:
            await provider.aclose()
    assert caught.value.code == "PROVIDER_REFUSED_REQUEST"
