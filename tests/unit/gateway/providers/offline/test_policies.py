"""Answers about written policies without a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.offline.provider import OfflineProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import ChatMessage, Text
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from support.gateway.requests import call_of

TOOL = {
    "server_name": "alpha",
    "tool_name": "fetch",
    "argument_roles": [{"path": "/url", "role": "url"}],
}
MATERIAL = {
    "constitution": "It may fetch from @known. Be careful.",
    "tools": [TOOL],
    "invariants": [],
    "lists": {"known": {"kind": "domain", "values": ["a.test"]}},
}


async def answer(schema: str, *said: str, system: str | None = None) -> dict[str, Any]:
    system = f"Instructions.\n{json.dumps(MATERIAL)}" if system is None else system
    messages = []
    for text in said:
        messages += [ChatMessage.user(text), ChatMessage.assistant("{}")]
    request = GenerateRequest(system, tuple(messages[:-1]), schema=ResponseSchema(schema, {}))
    provider = OfflineProvider()
    *_, last = [event async for event in provider.stream(call_of(request, "offline", "offline"))]
    assert isinstance(last, AnswerFinished)
    (part,) = last.parts
    assert isinstance(part, Text)
    value: dict[str, Any] = json.loads(part.text)
    return value


async def test_rules_are_read_from_the_material_and_leave_the_server_to_the_asker() -> None:
    (rule,) = (await answer("policy_rules", "Begin."))["rules"]
    assert rule["then"] == "allow"
    assert set(rule["when"]) == {"tools", "arguments"}
    assert rule["when"]["arguments"][0]["among"] == ["@known"]
    assert OFFLINE_MARK in rule["description"]


async def test_scenarios_are_written_once() -> None:
    (scenario,) = (await answer("policy_scenarios", "Begin."))["scenarios"]
    assert scenario["request"]["arguments"] == {"url": "a.test"}
    assert scenario["expected_decision"] == "allow"
    assert OFFLINE_MARK in scenario["description"]
    assert await answer("policy_scenarios", "Begin.", "Again.") == {"scenarios": []}


async def test_a_judge_blames_the_rules_for_whatever_failed() -> None:
    failed = json.dumps({"rules": [], "failed": [{"description": "alpha", "actual": "deny"}]})
    told = await answer("policy_judgement", failed)
    assert [(one["description"], one["blame"]) for one in told["attributions"]] == [("alpha", "rule")]
    assert (await answer("policy_judgement", failed, '{"failed": []}'))["satisfied"]


async def test_rules_that_say_what_the_words_say_are_left_as_they_are() -> None:
    told = await answer("policy_patches", "{}")
    assert told["operations"] == []
    assert OFFLINE_MARK in told["reasoning"]


@pytest.mark.parametrize(
    "system",
    [
        "",
        "Instructions.",
        "[" * 10**5,
        "{}",
        '{"constitution": "a", "tools": [1]}',
        '{"constitution": 1, "tools": []}',
    ],
)
async def test_without_the_material_it_is_refused_with_what_is_wrong(system: str) -> None:
    for schema in ("policy_rules", "policy_scenarios"):
        with pytest.raises(InvalidArgumentError) as refused:
            await answer(schema, "Begin.", system=system)
        assert refused.value.code == "MATERIAL_INVALID"
        assert refused.value.violations
    with pytest.raises(InvalidArgumentError):
        await answer("policy_judgement", "no object")
