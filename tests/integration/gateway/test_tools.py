"""Tools from the caller to every provider and back: over gRPC to the gateway, over HTTP from there."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.remote import RemoteModelGateway
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
from peripety.gateway.types.response import Completed, Completion, StopReason, ToolCallDelta
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.providers import PROVIDERS, Spoken, channel_to
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.llmsim.simulator import Served


PARAMETERS = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
ALPHA = Tool("action:alpha", "Turns a gauge up.", PARAMETERS)
BETA = Tool("action:beta/2", "Turns it down.", PARAMETERS, strict=True)
TOOLS = (ALPHA, BETA)
CALLS = [("action:alpha", {"amount": 1}), ("action:beta/2", {"amount": 2}), ("action:alpha", {"amount": 3})]


def calls(*wanted: tuple[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"tool": to_wire_name(name), "input": amount} for name, amount in wanted]}


SCENARIO = (
    ScriptBuilder()
    .respond_to_any("It says 3.", tool_result="3 gauges")
    .respond_to_any(calls(CALLS[1]), tool_result="try the other")
    .respond_to("all of them", {"text": "Wait.", **calls(*CALLS)})
    .respond_to("one of them", calls(CALLS[0]))
    .default_response("I call nothing.")
    .build()
)


@asynccontextmanager
async def gateway(tmp_path: Path, spoken: Spoken) -> AsyncIterator[tuple[Served, RemoteModelGateway]]:
    with served(SCENARIO) as server:
        async with channel_to(tmp_path, spoken, server.url) as channel:
            yield server, RemoteModelGateway(channel)


def asking(*messages: ChatMessage, **options: Any) -> GenerateRequest:
    return GenerateRequest("You turn gauges.", messages, **{"tools": TOOLS, **options})


def said(completion: Completion) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in completion.tool_calls]


def results(completion: Completion, text: str, *, is_error: bool = False) -> ChatMessage:
    parts = [ToolResult(call.call_id, text, is_error) for call in completion.tool_calls]
    return ChatMessage(ChatRole.USER, tuple(parts))


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_calls_stream_under_the_names_that_were_offered_and_their_results_lead_on(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    question = ChatMessage.user("Turn all of them.")
    async with gateway(tmp_path, spoken) as (_, remote):
        events = [event async for event in remote.stream(asking(question))]
        first = events[-1]
        assert isinstance(first, Completed)
        wanted = first.completion
        again = await remote.generate(
            asking(question, wanted.message, results(wanted, "try the other", is_error=True)),
        )
        history = (question, wanted.message, results(wanted, "try the other", is_error=True))
        last = await remote.generate(asking(*history, again.message, results(again, "3 gauges")))
    assert (wanted.stop_reason, said(wanted)) == (StopReason.TOOL_USE, CALLS)
    assert len({call.call_id for call in wanted.tool_calls}) == 3
    deltas = [event for event in events if isinstance(event, ToolCallDelta)]
    for call in wanted.tool_calls:
        own = [delta for delta in deltas if delta.call_id == call.call_id]
        assert [delta.name for delta in own] == [call.name, *[""] * (len(own) - 1)]
        assert json.loads("".join(delta.arguments_text for delta in own)) == json.loads(call.arguments)
    assert said(again) == [CALLS[1]]
    assert (last.text, last.stop_reason, last.tool_calls) == ("It says 3.", StopReason.END, ())


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_calls_that_another_provider_made_are_taken(tmp_path: Path, spoken: Spoken) -> None:
    foreign = ChatMessage(
        ChatRole.ASSISTANT,
        (Text("Let me see."), ToolCall("call:from/elsewhere 1", "action:alpha", '{"amount": 3}')),
    )
    result = ChatMessage(ChatRole.USER, (ToolResult("call:from/elsewhere 1", "3 gauges"),))
    async with gateway(tmp_path, spoken) as (_, remote):
        completion = await remote.generate(asking(ChatMessage.user("Turn one."), foreign, result))
    assert completion.text == "It says 3."


@pytest.mark.parametrize("mode", ToolChoiceMode)
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_a_choice_is_put_to_the_provider_or_refused_by_its_name(
    tmp_path: Path,
    spoken: Spoken,
    mode: ToolChoiceMode,
) -> None:
    choice = ToolChoice(mode, "action:alpha" if mode is ToolChoiceMode.NAMED else None)
    async with gateway(tmp_path, spoken) as (server, remote):
        text = "Turn none." if mode is ToolChoiceMode.NONE else "Turn one of them."
        request = asking(ChatMessage.user(text), tool_choice=choice)
        try:
            completion = await remote.generate(request)
        except InvalidArgumentError as error:
            refused = str(error)
        else:
            refused = ""
        seen = len(server.simulator.captured)
    if refused:
        assert "tool_choice" in refused
        assert mode in {ToolChoiceMode.ANY, ToolChoiceMode.NAMED}
        assert seen == 0
    elif mode is ToolChoiceMode.NONE:
        assert completion.text == "I call nothing."
    else:
        assert said(completion) == [CALLS[0]]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([ChatMessage(ChatRole.USER, (ToolResult("c", "3"),))], "matches no earlier call"),
        (
            [
                ChatMessage.user("a"),
                ChatMessage(ChatRole.ASSISTANT, (ToolCall("c", "action:alpha", "{}"),)),
                ChatMessage.user("b"),
            ],
            "must contain the result of the tool call 'c'",
        ),
        (
            [
                ChatMessage.user("a"),
                ChatMessage(ChatRole.ASSISTANT, (ToolCall("c", "action:alpha", "{}"),)),
                ChatMessage(ChatRole.USER, (ToolResult("c", "3"), ToolResult("d", "4"))),
            ],
            "'d', which matches no earlier call",
        ),
        (
            [
                ChatMessage.user("a"),
                ChatMessage(ChatRole.ASSISTANT, (ToolCall("c", "action:alpha", "[]"),)),
                ChatMessage(ChatRole.USER, (ToolResult("c", "3"),)),
            ],
            "must be a JSON object",
        ),
    ],
)
async def test_calls_and_results_that_do_not_go_together_are_refused_before_a_provider_is_asked(
    tmp_path: Path,
    messages: list[ChatMessage],
    problem: str,
) -> None:
    async with gateway(tmp_path, PROVIDERS[0]) as (server, remote):
        with pytest.raises(InvalidArgumentError, match="messages") as caught:
            await remote.generate(asking(*messages))
        assert len(server.simulator.captured) == 0
    assert problem in str(caught.value)


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_an_object_waits_for_the_tools_that_the_model_wants_called_first(
    tmp_path: Path,
    spoken: Spoken,
) -> None:
    schema = ResponseSchema("reading", {"type": "object", "properties": {"gauge": {"type": "integer"}}})
    scenario = (
        ScriptBuilder()
        .respond_to_any({"json": {"gauge": 3}}, tool_result="3 gauges")
        .respond_to_any(calls(CALLS[0]))
        .build()
    )
    question = ChatMessage.user("How many?")
    with served(scenario) as server:
        async with channel_to(tmp_path, spoken, server.url) as channel:
            remote = RemoteModelGateway(channel)
            wanted = await remote.generate(asking(question, schema=schema))
            answer = await remote.generate(
                asking(question, wanted.message, results(wanted, "3 gauges"), schema=schema),
            )
    assert (wanted.stop_reason, wanted.value, said(wanted)) == (StopReason.TOOL_USE, None, [CALLS[0]])
    assert (answer.value, answer.repaired, answer.calls) == ({"gauge": 3}, False, 1)
