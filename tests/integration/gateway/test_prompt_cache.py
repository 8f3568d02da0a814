"""Plans for the prompt cache, over real connections to the scripted LLM, beside what its cache did."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.call_context import Clock
from peripety.core.config import Config
from peripety.gateway.batch import WarmupPolicy, fan_out
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import CacheConfig, GenerateRequest
from peripety.gateway.types.response import CacheBlock, Completion
from peripety.llmsim.script.files import ScriptBuilder
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


SYSTEM = "Answer in one word, whatever the question is. " * 400
SCENARIO = ScriptBuilder().default_response("Yes.")
ANTHROPIC, OPENAI, GPT = "anthropic/claude-opus-5-5", "openai/gpt-6.2-sol", "openai/gpt-4.1"


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def asking(scenario: ScriptBuilder = SCENARIO) -> AsyncIterator[LocalModelGateway]:
    with served(scenario.build()) as server:
        settings: dict[str, Any] = {
            "anthropic_api_base": server.url,
            "anthropic_api_key": "k",
            "openai_api_base": f"{server.url}/v1",
            "openai_api_key": "k",
        }
        config = Config(**settings)
        providers = ProviderRegistry(config)
        try:
            yield LocalModelGateway(providers, CallExecutor(config, Clock(sleep=no_pause)))
        finally:
            await providers.aclose()


def turn(*messages: ChatMessage, model: str = ANTHROPIC, **options: Any) -> GenerateRequest:
    return GenerateRequest(SYSTEM, messages, model=model, **options)


async def talk(gateway: LocalModelGateway, turns: int, **options: Any) -> list[Completion]:
    messages: tuple[ChatMessage, ...] = ()
    answers: list[Completion] = []
    for number in range(turns):
        messages = (*messages, ChatMessage.user(f"Is {number} a number? " * 40))
        answers.append(await gateway.generate(turn(*messages, **options)))
        messages = (*messages, answers[-1].message)
    return answers


@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI, GPT])
async def test_the_cache_does_what_was_planned(model: str) -> None:
    async with asking() as gateway:
        first, *others = await talk(gateway, 5, model=model)
    assert first.cache_plan is not None
    assert first.cache_plan.predicted_read_tokens == first.usage.cache_read_tokens == 0
    for answer in others:
        assert answer.cache_plan is not None
        assert answer.cache_plan.first_difference is None
        read = answer.cache_plan.predicted_read_tokens
        assert answer.usage.cache_read_tokens > 4_000
        assert read == pytest.approx(answer.usage.cache_read_tokens, rel=0.05)


async def test_every_attempt_is_planned_anew() -> None:
    failing = ScriptBuilder(failures=[{"type": "overloaded", "times": 1}]).default_response("Yes.")
    async with asking(failing) as gateway:
        first, second = await talk(gateway, 2)
    assert first.calls == 2
    assert second.usage.cache_read_tokens > 4_000


async def test_without_the_cache_nothing_is_planned_read_or_written() -> None:
    async with asking() as gateway:
        answers = await talk(gateway, 2, cache=CacheConfig(enabled=False))
    for answer in answers:
        assert answer.cache_plan is None
        assert (answer.usage.cache_read_tokens, answer.usage.cache_write_tokens) == (0, 0)


async def test_another_model_is_named_as_the_difference() -> None:
    async with asking() as gateway:
        (first,) = await talk(gateway, 1)
        history = ChatMessage.user("Is 0 a number? " * 40), first.message, ChatMessage.user("v")
        second = await gateway.generate(turn(*history, model="anthropic/claude-sonnet-5"))
    assert second.cache_plan is not None
    assert second.cache_plan.first_difference is not None
    assert second.cache_plan.first_difference.block is CacheBlock.MODEL


async def test_of_many_requests_that_begin_alike_one_writes_and_the_others_read() -> None:
    async with asking() as gateway:
        requests = [turn(ChatMessage.user(f"{number}?")) for number in range(8)]
        outcomes = [outcome async for outcome in fan_out(gateway, requests, WarmupPolicy.AT_FIRST_EVENT)]
    usages = [outcome.result.usage for outcome in outcomes if isinstance(outcome.result, Completion)]
    assert len(usages) == 8
    assert sorted(usage.cache_read_tokens > 4_000 for usage in usages) == [False, *[True] * 7]
    assert sum(usage.cache_write_tokens > 4_000 for usage in usages) == 1
