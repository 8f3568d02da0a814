"""Answers of an author of tests, without a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.offline.provider import OfflineProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import ChatMessage, ChatRole, Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import StopReason, ToolCallDelta
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import ProviderEvent


TOOL = Tool("generate_test", "Adds one test.", {"type": "object"})
MATERIAL = {"task": "A name has at most 20 letters.", "categories": [{"name": "boundary"}]}
QUESTION = {"question": "tests", "category": "boundary", "round": 1, "at_least": 3, "at_most": 5}


def request(said: Any, *, schema: str | None = None, material: Any = None) -> GenerateRequest:
    asked = ResponseSchema(schema, {}) if schema else None
    system = f"Instructions.\n{json.dumps(MATERIAL if material is None else material)}"
    tools = () if schema else (TOOL,)
    return GenerateRequest(system, (ChatMessage.user(json.dumps(said)),), schema=asked, tools=tools)


async def answer(asked: GenerateRequest) -> tuple[list[ProviderEvent], AnswerFinished]:
    *events, last = [one async for one in OfflineProvider().stream(call_of(asked, "offline", "offline"))]
    assert isinstance(last, AnswerFinished)
    return events, last


async def value(asked: GenerateRequest) -> dict[str, Any]:
    _, last = await answer(asked)
    (part,) = last.parts
    assert isinstance(part, Text)
    said: dict[str, Any] = json.loads(part.text)
    return said


async def test_the_tool_is_called_once_for_each_test() -> None:
    events, last = await answer(request(QUESTION))
    calls = [part for part in last.parts if isinstance(part, ToolCall)]
    assert last.stop_reason is StopReason.TOOL_USE
    assert len(calls) == 3
    assert events == [ToolCallDelta(call.call_id, call.arguments, "generate_test") for call in calls]
    tests = [json.loads(call.arguments) for call in calls]
    assert {*tests[0]} == {"id", "input", "expected_output", "reasoning", "confidence"}
    assert all(OFFLINE_MARK in test["reasoning"] for test in tests)


async def test_a_list_holds_the_same_tests() -> None:
    _, last = await answer(request(QUESTION))
    called = [json.loads(part.arguments) for part in last.parts if isinstance(part, ToolCall)]
    assert await value(request(QUESTION, schema="tests")) == {"tests": called}


async def test_after_its_calls_it_has_nothing_more_to_say() -> None:
    first = request(QUESTION)
    _, last = await answer(first)
    calls = tuple(part for part in last.parts if isinstance(part, ToolCall))
    results = tuple(ToolResult(call.call_id, "Kept.") for call in calls)
    messages = (
        *first.messages,
        ChatMessage(ChatRole.ASSISTANT, calls),
        ChatMessage(ChatRole.USER, results),
    )
    further = GenerateRequest(first.system, messages, tools=(TOOL,))
    events, last = await answer(further)
    assert last.stop_reason is StopReason.END
    assert not any(isinstance(event, ToolCallDelta) for event in events)


async def test_it_reflects_and_assesses() -> None:
    existing = {"existing_tests": [], "existing_count": 0}
    asked = {"question": "reflection", "category": "boundary", **existing}
    said = await value(request(asked, schema="reflection"))
    assert {*said} == {"text", "nothing_missing", "recommendations"}
    assert said["nothing_missing"] is False
    asked = {"question": "assessment", "by_category": {"boundary": 0}, **existing}
    said = await value(request(asked, schema="assessment"))
    assert {*said} == {"text", "score", "gaps", "recommendations"}
    assert said["score"] == 1


@pytest.mark.parametrize(
    ("said", "material"),
    [("no object", MATERIAL), (QUESTION, {"task": "Count."}), (QUESTION, {})],
)
async def test_without_its_material_there_is_no_answer(said: Any, material: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        await answer(request(said, material=material))
    assert refused.value.code == "MATERIAL_INVALID"
