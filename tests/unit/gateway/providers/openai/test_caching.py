"""What OpenAI is told about caching."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI
from peripety.gateway.providers.openai.request_body import cache_markers, to_openai_body
from peripety.gateway.types.message import ChatMessage, Tool
from peripety.gateway.types.request import CacheConfig, CacheTTL, GenerateRequest
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint
from support.gateway.requests import asking, call_of

MARK = {"mode": "explicit"}
HISTORY = (ChatMessage.user("u"), ChatMessage.assistant("a"), ChatMessage.user("v"))
BREAKPOINTS = (
    CacheBreakpoint(CacheBlock.TOOLS, CacheTTL.FIVE_MINUTES),
    CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.FIVE_MINUTES),
    CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 0),
    CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 2),
)


def told(model: str = "gpt-5.2", system: str = "s", **options: Any) -> dict[str, Any]:
    request = GenerateRequest(system, HISTORY, **options)
    return dict(to_openai_body(call_of(request, model, "openai", BREAKPOINTS), OPENAI).document)


def test_requests_with_the_same_instructions_and_tools_have_one_key() -> None:
    key = told()["prompt_cache_key"]
    assert len(key) <= 64
    assert told(temperature=1.0, max_output_tokens=5)["prompt_cache_key"] == key
    tool = Tool("gauge", "Reads.", {"type": "object"})
    others = [told(system="t"), told(tools=(tool,)), told(conversation_id="c"), told(conversation_id="d")]
    assert len({key, *(other["prompt_cache_key"] for other in others)}) == 5


def test_a_conversation_has_its_own_key_which_does_not_tell_its_name() -> None:
    key = told(conversation_id="conversations/x")["prompt_cache_key"]
    assert told(system="t", conversation_id="conversations/x")["prompt_cache_key"] == key
    assert "x" not in key


@pytest.mark.parametrize(
    ("model", "options"),
    [("gpt-5.2", None), ("gpt-6-sol", {"mode": "explicit"}), ("gpt-4.1", None)],
)
def test_a_cache_that_is_not_wanted_is_not_written(model: str, options: dict[str, str] | None) -> None:
    body = told(model, cache=CacheConfig(enabled=False))
    assert body.get("prompt_cache_options") == options
    assert "prompt_cache_key" not in body
    assert "prompt_cache_breakpoint" not in str(body)


def test_breakpoints_stand_on_the_last_text_of_what_they_are_behind() -> None:
    system, first, answer, last = told("gpt-6-sol")["messages"]
    assert system["content"] == [{"type": "text", "text": "s", "prompt_cache_breakpoint": MARK}]
    assert first["content"] == [{"type": "text", "text": "u", "prompt_cache_breakpoint": MARK}]
    assert answer["content"] == [{"type": "text", "text": "a"}]
    assert last["content"] == [{"type": "text", "text": "v"}], "the provider sets this one by itself"


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-4.1", "new"])
def test_models_that_cache_by_themselves_are_given_no_breakpoints(model: str) -> None:
    assert "prompt_cache_breakpoint" not in str(told(model))


def test_no_longer_life_is_asked_for_than_the_breakpoint_of_the_provider_has() -> None:
    point = CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.ONE_HOUR)
    call = call_of(asking(), "gpt-6-sol", "openai", (point,))
    assert cache_markers(call).system == {"prompt_cache_breakpoint": MARK}


def test_other_servers_are_told_nothing_that_they_would_not_know() -> None:
    for provider, dialect in (("generic", GENERIC), ("deepseek", DEEPSEEK)):
        assert "cache" not in str(to_openai_body(call_of(asking(), "m", provider), dialect).document)
    azure = to_openai_body(call_of(asking(), "d", "azure"), AZURE).document
    assert "prompt_cache_key" in azure
