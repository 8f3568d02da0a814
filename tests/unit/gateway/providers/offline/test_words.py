from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.schemas import OUTCOME
from peripety.gateway.providers.offline.answers import match_action
from peripety.gateway.providers.offline.provider import OfflineProvider
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import StopReason, TextDelta
from peripety.scenario.tools import scenario_tools
from support.engine.specs import action, spec
from support.gateway.requests import call_of

if TYPE_CHECKING:
    from peripety.gateway.types.message import Tool


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


def request(words: str, *more: ChatMessage, **options: Any) -> GenerateRequest:
    facts = {"turn": 1, "actions": [], "changes": [], "log": [], "input": words}
    asked = ChatMessage.user(json.dumps({"facts": facts}))
    schema = ResponseSchema(OUTCOME, {})
    return GenerateRequest("system", (asked, *more), schema=schema, tools=OFFERED, **options)


async def answer(asked: GenerateRequest) -> tuple[AnswerFinished, str]:
    events = [event async for event in OfflineProvider().stream(call_of(asked, "offline", "offline"))]
    assert isinstance(events[-1], AnswerFinished)
    return events[-1], "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_an_action_is_taken_first_and_then_told_with_what_came_of_it() -> None:
    taken, text = await answer(request("turn the alpha"))
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
    told, text = await answer(request("turn the alpha", *said))
    assert told.stop_reason is StopReason.END
    narrative = json.loads(text)["narrative"]
    assert all(part in narrative for part in ("Turn the alpha", "Alpha", "Done.", "Beta rises"))


async def test_an_action_that_was_rejected_is_not_told_as_done() -> None:
    taken, _ = await answer(request("turn the alpha"))
    (call,) = taken.parts
    assert isinstance(call, ToolCall)
    result = ToolResult(call.call_id, json.dumps({"accepted": False, "reasons": []}), is_error=True)
    said = (ChatMessage(ChatRole.ASSISTANT, (call,)), ChatMessage(ChatRole.USER, (result,)))
    _, text = await answer(request("turn the alpha", *said))
    assert "Turn the alpha" not in json.loads(text)["narrative"]


@pytest.mark.parametrize("words", ["", "nothing that is known"])
async def test_words_that_name_nothing_are_told_at_once(words: str) -> None:
    told, text = await answer(request(words))
    assert told.stop_reason is StopReason.END
    assert json.loads(text)["narrative"]


async def test_nothing_is_taken_where_no_tool_may_be_called() -> None:
    told, _ = await answer(request("turn the alpha", tool_choice=ToolChoice(ToolChoiceMode.NONE)))
    assert told.stop_reason is StopReason.END
