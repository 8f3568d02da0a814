"""Cache keys: equality of requests."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.registry import AnswerSource
from peripety.gateway.response_cache import caching_gateway as key_module
from peripety.gateway.response_cache.caching_gateway import cache_key
from peripety.gateway.types.message import ChatMessage, Tool, ToolChoice, ToolChoiceMode
from peripety.gateway.types.request import (
    CacheConfig,
    CacheTTL,
    GenerateRequest,
    ReasoningEffort,
    ResponseCacheMode,
    ResponseSchema,
)

ANSWERER = AnswerSource("p", "m", "a")
SCHEMA = ResponseSchema("answer", {"type": "object", "properties": {"a": {}, "b": {}}})
TOOL = Tool("a", "d", {"type": "object"})
REQUEST = GenerateRequest("s", (ChatMessage.user("u"),), SCHEMA, "p/m", 9, 0.5, 4, ResponseCacheMode.USE)
OTHERS: dict[str, list[Any]] = {
    "system": [None, "", "t"],
    "messages": [
        (ChatMessage.user("v"),),
        (
            ChatMessage.user("u"),
            ChatMessage.assistant("u"),
            ChatMessage.user("u"),
        ),
    ],
    "schema": [
        None,
        replace(SCHEMA, name="other"),
        replace(SCHEMA, advisory=True),
        replace(SCHEMA, document={"type": "object"}),
        replace(SCHEMA, document={"properties": {"a": {}, "b": {}}, "type": "object"}),
        replace(SCHEMA, document={"type": "object", "properties": {"b": {}, "a": {}}}),
    ],
    "max_output_tokens": [None, 8],
    "answer_tokens": [9],
    "reasoning_effort": [ReasoningEffort.LOW, ReasoningEffort.HIGH],
    "temperature": [None, 0.0],
    "seed": [None, 0],
    "tools": [
        (TOOL,),
        (replace(TOOL, name="b"),),
        (replace(TOOL, description="e"),),
        (replace(TOOL, strict=True),),
        (replace(TOOL, input_schema={"type": "object", "properties": {}}),),
        (TOOL, replace(TOOL, name="b")),
    ],
    "tool_choice": [ToolChoice(), ToolChoice(ToolChoiceMode.ANY), ToolChoice(disable_parallel=True)],
    "fallback_models": [("m",)],
    "stop_sequences": [("a",), ("a", "b")],
    "cache": [CacheConfig(ttl=CacheTTL.ONE_HOUR), CacheConfig(enabled=False)],
}
SAYS_NOTHING = {"model", "response_cache", "budget", "conversation_id", "conversation_budget"}


@pytest.mark.parametrize(("field", "value"), [(name, value) for name in OTHERS for value in OTHERS[name]])
def test_a_request_that_differs_in_any_field_has_another_key(field: str, value: Any) -> None:
    assert cache_key(replace(REQUEST, **{field: value}), ANSWERER) != cache_key(REQUEST, ANSWERER)


def test_every_field_was_thought_of() -> None:
    assert {field.name for field in fields(GenerateRequest)} == {*OTHERS, *SAYS_NOTHING}


@pytest.mark.parametrize("field", ["provider", "model", "account"])
def test_who_would_answer_and_for_whom_is_part_of_the_key(field: str) -> None:
    assert cache_key(REQUEST, replace(ANSWERER, **{field: "x"})) != cache_key(REQUEST, ANSWERER)


@pytest.mark.parametrize(("name", "value"), [("_KEY_FORMAT", 0), ("__version__", "0")])
def test_another_program_or_form_of_key_has_other_keys(
    name: str,
    value: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = cache_key(REQUEST, ANSWERER)
    monkeypatch.setattr(key_module, name, value)
    assert cache_key(REQUEST, ANSWERER) != before


@pytest.mark.parametrize(
    "same",
    [
        replace(REQUEST, model=None),
        replace(REQUEST, response_cache=ResponseCacheMode.REFRESH),
        replace(REQUEST, schema=replace(SCHEMA, document=dict(SCHEMA.document))),
    ],
)
def test_what_a_model_is_never_told_changes_no_key(same: GenerateRequest) -> None:
    assert cache_key(same, ANSWERER) == cache_key(REQUEST, ANSWERER)


def test_two_ways_to_write_the_same_have_one_key() -> None:
    parts = ChatMessage.user("u"), ChatMessage.user("v")
    split, merged = replace(REQUEST, messages=parts), (ChatMessage.user("u\n\nv"),)
    assert cache_key(split, ANSWERER) == cache_key(replace(REQUEST, messages=merged), ANSWERER)
    whole = replace(REQUEST, temperature=1)
    assert cache_key(whole, ANSWERER) == cache_key(replace(REQUEST, temperature=1.0), ANSWERER)


def test_a_prompt_that_nobody_could_answer_has_no_key() -> None:
    with pytest.raises(InvalidArgumentError):
        cache_key(replace(REQUEST, messages=()), ANSWERER)


def test_text_that_is_not_unicode_has_a_key() -> None:
    odd = (ChatMessage.user("\ud800"),)
    assert len(cache_key(replace(REQUEST, messages=odd), ANSWERER)) == 64
