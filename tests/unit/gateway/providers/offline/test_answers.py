"""Answers about written policies without a model.

Answers of an author of tests, without a model.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.engine.schemas import OUTCOME
from peripety.errors import InvalidArgumentError
from peripety.gateway.providers.offline.answers import match_action, rank_actions
from peripety.gateway.providers.offline.provider import OfflineProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import StopReason, TextDelta, ToolCallDelta
from peripety.scenario.action_tools import scenario_tools
from support.engine.specs import action, spec
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import ProviderEvent


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


async def answer_schema(task: str, *said: str, system: str | None = None) -> dict[str, Any]:
    """The answer to a policy task, which is named by its heading, or about tests by the schema."""
    is_task = task.startswith("#")
    schema = "policy_answer" if is_task else task
    system = f"Instructions.\n{json.dumps(MATERIAL)}" if system is None else system
    messages = []
    for number, text in enumerate(said):
        told = f"{task} (prompt version 1)\n{text}" if is_task and not number else text
        messages += [ChatMessage.user(told), ChatMessage.assistant("{}")]
    request = GenerateRequest(system, tuple(messages[:-1]), schema=ResponseSchema(schema, {}))
    provider = OfflineProvider()
    *_, last = [event async for event in provider.stream(call_of(request, "offline", "offline"))]
    assert isinstance(last, AnswerFinished)
    (part,) = last.parts
    assert isinstance(part, Text)
    value: dict[str, Any] = json.loads(part.text)
    return value


async def test_rules_are_read_from_the_material_and_leave_the_server_to_the_asker() -> None:
    (rule,) = (await answer_schema("# Rule author", "Begin."))["rules"]
    assert rule["then"] == "allow"
    assert set(rule["when"]) == {"tools", "arguments"}
    assert rule["when"]["arguments"][0]["among"] == ["@known"]
    assert OFFLINE_MARK in rule["description"]


async def test_scenarios_are_written_once() -> None:
    (scenario,) = (await answer_schema("# Scenario author", "Begin."))["scenarios"]
    assert scenario["request"]["arguments"] == {"url": "a.test"}
    assert scenario["expected_decision"] == "allow"
    assert OFFLINE_MARK in scenario["description"]
    assert await answer_schema("# Scenario author", "Begin.", "Again.") == {"scenarios": []}


async def test_a_judge_blames_the_rules_for_whatever_failed() -> None:
    failed = json.dumps({"rules": [], "failed": [{"description": "alpha", "actual": "deny"}]})
    told = await answer_schema("# Judge of disagreements", failed)
    assert [(one["description"], one["blame"]) for one in told["attributions"]] == [("alpha", "rule")]
    assert (await answer_schema("# Judge of disagreements", failed, '{"failed": []}'))["satisfied"]


async def test_rules_that_say_what_the_words_say_are_left_as_they_are() -> None:
    told = await answer_schema("# Mender of rules", "{}")
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
    for schema in ("# Rule author", "# Scenario author"):
        with pytest.raises(InvalidArgumentError) as refused:
            await answer_schema(schema, "Begin.", system=system)
        assert refused.value.code == "MATERIAL_INVALID"
        assert refused.value.violations
    with pytest.raises(InvalidArgumentError):
        await answer_schema("# Judge of disagreements", "no object")


TEST_TOOL = Tool("generate_test", "Adds one test.", {"type": "object"})
TEST_MATERIAL = {"task": "A name has at most 20 letters.", "categories": [{"name": "boundary"}]}
TEST_QUESTION = {"question": "tests", "category": "boundary", "round": 1, "at_least": 3, "at_most": 5}


def request_for_tests(said: Any, *, schema: str | None = None, material: Any = None) -> GenerateRequest:
    asked = ResponseSchema(schema, {}) if schema else None
    system = f"Instructions.\n{json.dumps(TEST_MATERIAL if material is None else material)}"
    tools = () if schema else (TEST_TOOL,)
    return GenerateRequest(system, (ChatMessage.user(json.dumps(said)),), schema=asked, tools=tools)


async def answer_with_tests(asked: GenerateRequest) -> tuple[list[ProviderEvent], AnswerFinished]:
    *events, last = [one async for one in OfflineProvider().stream(call_of(asked, "offline", "offline"))]
    assert isinstance(last, AnswerFinished)
    return events, last


async def value(asked: GenerateRequest) -> dict[str, Any]:
    _, last = await answer_with_tests(asked)
    (part,) = last.parts
    assert isinstance(part, Text)
    said: dict[str, Any] = json.loads(part.text)
    return said


async def test_the_tool_is_called_once_for_each_test() -> None:
    events, last = await answer_with_tests(request_for_tests(TEST_QUESTION))
    calls = [part for part in last.parts if isinstance(part, ToolCall)]
    assert last.stop_reason is StopReason.TOOL_USE
    assert len(calls) == 3
    assert events == [ToolCallDelta(call.call_id, call.arguments, "generate_test") for call in calls]
    tests = [json.loads(call.arguments) for call in calls]
    assert {*tests[0]} == {"id", "input", "expected_output", "reasoning", "confidence"}
    assert all(OFFLINE_MARK in test["reasoning"] for test in tests)


async def test_a_list_holds_the_same_tests() -> None:
    _, last = await answer_with_tests(request_for_tests(TEST_QUESTION))
    called = [json.loads(part.arguments) for part in last.parts if isinstance(part, ToolCall)]
    assert await value(request_for_tests(TEST_QUESTION, schema="tests")) == {"tests": called}


async def test_after_its_calls_it_has_nothing_more_to_say() -> None:
    first = request_for_tests(TEST_QUESTION)
    _, last = await answer_with_tests(first)
    calls = tuple(part for part in last.parts if isinstance(part, ToolCall))
    results = tuple(ToolResult(call.call_id, "Kept.") for call in calls)
    messages = (
        *first.messages,
        ChatMessage(ChatRole.ASSISTANT, calls),
        ChatMessage(ChatRole.USER, results),
    )
    further = GenerateRequest(first.system, messages, tools=(TEST_TOOL,))
    events, last = await answer_with_tests(further)
    assert last.stop_reason is StopReason.END
    assert not any(isinstance(event, ToolCallDelta) for event in events)


async def test_it_reflects_and_assesses() -> None:
    existing = {"existing_tests": [], "existing_count": 0}
    asked = {"question": "reflection", "category": "boundary", **existing}
    said = await value(request_for_tests(asked, schema="reflection"))
    assert {*said} == {"text", "nothing_missing", "recommendations"}
    assert said["nothing_missing"] is False
    asked = {"question": "assessment", "by_category": {"boundary": 0}, **existing}
    said = await value(request_for_tests(asked, schema="assessment"))
    assert {*said} == {"text", "score", "gaps", "recommendations"}
    assert said["score"] == 1


@pytest.mark.parametrize(
    ("said", "material"),
    [("no object", TEST_MATERIAL), (TEST_QUESTION, {"task": "Count."}), (TEST_QUESTION, {})],
)
async def test_without_its_material_there_is_no_answer(said: Any, material: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        await answer_with_tests(request_for_tests(said, material=material))
    assert refused.value.code == "MATERIAL_INVALID"


AMOUNT = {"type": "integer", "minimum": 1, "maximum": 5}


def tools(*actions: dict[str, Any]) -> tuple[Tool, ...]:
    return tuple(one.tool for one in scenario_tools(spec(actions=list(actions))))


def named(action_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {**action(action_id, **more), "name": name}


OFFERED = tools(
    named("turn_alpha", "Turn the alpha"),
    named("turn", "Turn"),
    named("lift", "Lift. At once", params={"amount": AMOUNT}),
    named("set", "Set beta", params={"way": {"type": "string", "enum": ["up"]}, "n": AMOUNT}),
    named("choose", "Choose", params={"way": {"type": "string", "enum": ["up", "down"]}}),
    named("move_a", "Move"),
    named("move_b", "Move"),
    named("wide", "開門"),
)


@pytest.mark.parametrize(
    ("words", "name", "given"),
    [
        ("I turn the Alpha, slowly", "action:turn_alpha", {}),
        ("turn, alpha", "action:turn_alpha", {}),
        ("Now we turn.", "action:turn", {}),
        ("lift by 3", "action:lift", {"amount": 3}),
        ("lift by 003", "action:lift", {"amount": 3}),
        ("lift by ٣", "action:lift", {"amount": 3}),
        ("set the beta to 5", "action:set", {"way": "up", "n": 5}),
        ("move_b it is", "action:move_b", {}),
        ("我去開門吧", "action:wide", {}),
    ],
)
def test_the_action_that_the_words_name_is_meant(words: str, name: str, given: dict[str, Any]) -> None:
    call = match_action(words, OFFERED)
    assert call is not None
    assert (call.name, json.loads(call.arguments)) == (name, given)


SENTENCES = tools(
    named("settle", "Herausfinden, wer eine Spur hinterlässt"),
    named("leave", "Die halbe Last zurücklassen"),
    named("wide", "查出是谁留下痕迹"),
)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("ich will herausbekommen, wer die Spuren hinterlässt", "action:settle"),
        ("lasse die halbe Last zurück", "action:leave"),
        ("查出谁留下痕迹", "action:wide"),
    ],
)
def test_words_in_another_form_mean_the_action_that_shares_most_of_them(words: str, name: str) -> None:
    call = match_action(words, SENTENCES)
    assert call is not None
    assert call.name == name


@pytest.mark.parametrize("words", ["such die Spur", "nicht die halbe Last zurücklassen!", "痕迹"])
def test_few_common_words_or_a_negation_only_rank_the_actions(words: str) -> None:
    assert match_action(words, SENTENCES[1:] if "nicht" not in words else SENTENCES[:1]) is None
    assert rank_actions(words, SENTENCES)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "I wait",
        "returning",
        "lift",
        "lift by 9",
        pytest.param(f"lift by {'9' * 5_000}", id="lift by a number without end"),
        "lift by 2.5",
        "lift 2 or 3",
        "lift by x3",
        "choose",
        "choose up",
        "move",
        "query state and roll",
    ],
)
def test_what_is_in_doubt_is_not_done(words: str) -> None:
    assert match_action(words, OFFERED) is None


def narration_request(words: str, *more: ChatMessage, **options: Any) -> GenerateRequest:
    facts = {"turn": 1, "actions": [], "changes": [], "log": [], "input": words}
    asked = ChatMessage.user(json.dumps({"facts": facts}))
    schema = ResponseSchema(OUTCOME, {})
    return GenerateRequest("system", (asked, *more), schema=schema, tools=OFFERED, **options)


async def narrate(asked: GenerateRequest) -> tuple[AnswerFinished, str]:
    events = [event async for event in OfflineProvider().stream(call_of(asked, "offline", "offline"))]
    assert isinstance(events[-1], AnswerFinished)
    return events[-1], "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_an_action_is_taken_first_and_then_told_with_what_came_of_it() -> None:
    taken, text = await narrate(narration_request("turn the alpha"))
    assert (taken.stop_reason, text) == (StopReason.TOOL_USE, "")
    (call,) = taken.parts
    assert isinstance(call, ToolCall)
    change = {"path": "state.alpha", "before": 1, "after": 2, "cause": "action:turn_alpha"}
    world = {
        "event": {"id": "e", "name": "Beta rises"},
        "changes": ["…"],
        "log": [],
        "status": {"kind": "lost"},
    }
    result = ToolResult(
        call.call_id,
        json.dumps({"accepted": True, "changes": [change, "…"], "log": ["Done."], "world": world}),
    )
    said = (ChatMessage(ChatRole.ASSISTANT, (call,)), ChatMessage(ChatRole.USER, (result,)))
    told, text = await narrate(narration_request("turn the alpha", *said))
    assert told.stop_reason is StopReason.END
    narrative = json.loads(text)["narrative"]
    assert all(part in narrative for part in ("Turn the alpha", "Alpha", "Done.", "Beta rises"))


async def test_an_action_that_was_rejected_is_not_told_as_done() -> None:
    taken, _ = await narrate(narration_request("turn the alpha"))
    (call,) = taken.parts
    assert isinstance(call, ToolCall)
    result = ToolResult(call.call_id, json.dumps({"accepted": False, "reasons": []}), is_error=True)
    said = (ChatMessage(ChatRole.ASSISTANT, (call,)), ChatMessage(ChatRole.USER, (result,)))
    _, text = await narrate(narration_request("turn the alpha", *said))
    assert "Turn the alpha" not in json.loads(text)["narrative"]


@pytest.mark.parametrize("words", ["", "nothing that is known"])
async def test_words_that_name_nothing_are_told_at_once(words: str) -> None:
    told, text = await narrate(narration_request(words))
    assert told.stop_reason is StopReason.END
    assert json.loads(text)["narrative"]


async def test_nothing_is_taken_where_no_tool_may_be_called() -> None:
    told, _ = await narrate(narration_request("turn the alpha", tool_choice=ToolChoice(ToolChoiceMode.NONE)))
    assert told.stop_reason is StopReason.END
