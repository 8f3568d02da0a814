"""Narrators that act by tools, over a real channel and in the words of every provider."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.setup import register_service as bind_gateway
from peripety.llmsim.script.files import ScriptBuilder
from peripety.llmsim.script.types import ScriptedUsage, ScriptResponse
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.types import SimStopReason
from peripety.rpc.channel import open_channel
from peripety.scenario.types import ScenarioSource
from peripety.server.app import serve_registered
from peripety.session.setup import register_service as bind_sessions
from support.engine.specs import action, document
from support.gateway.providers import PROVIDERS, config_of
from support.llmsim.simulator import Answering, served
from support.servers.apps import config_for
from support.session.sessions import OneScenario, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.core.config import Config
    from peripety.rpc.container import ServiceContainer
    from support.gateway.providers import Spoken


RAISE = [{"op": "inc", "path": "state.a", "value": 1}]
SCENARIO = document(
    entities=[{"id": "p", "playable": True}, {"id": "q"}],
    state={"a": 1, "b": 5, "private": {"q": {"x": 77}}},
    actions=[{**action("act", RAISE), "name": "Raise the alpha"}, action("other")],
)
CAUSES = [engine.CAUSE_KIND_ACTION, engine.CAUSE_KIND_NARRATOR]
OUTCOME = {
    "state_changes": [{"op": "inc", "path": "state.a", "value": 1}],
    "roll_requests": [{"kind": "later", "difficulty": 3}],
    "narrative": "It is told.",
    "visible_dialogue": [{"entity_id": "q", "utterance": "So be it."}],
}
CALLS = {
    "text": "I act first.",
    "tool_calls": [
        {"tool": to_wire_name("action:act"), "input": {}},
        {"tool": "query", "input": {"path": "state.b"}},
        {"tool": "roll", "input": {"kind": "first", "difficulty": 10}},
    ],
}


async def bind_scenario(wiring: ServiceContainer) -> None:
    wiring.register(ScenarioSource, OneScenario(SCENARIO))


@asynccontextmanager
async def sessions_at(config: Config, *more: Any) -> AsyncIterator[SessionServiceAsyncStub]:
    async with (
        serve_registered(config, [*more, bind_scenario, bind_sessions]) as app,
        open_channel(app.address) as channel,
    ):
        yield SessionServiceStub(channel)


async def play(stub: SessionServiceAsyncStub, said: str, *actions: str) -> list[pb.TurnEvent]:
    """The first turn of a new session."""
    created = await stub.CreateSession(pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario"))
    request = pb.TakeTurnRequest(
        session_id=created.session.session_id,
        request_id=new_id(),
        expected_turn=1,
        actions=[engine.ActionCall(action_id=name) for name in actions],
        input=said,
        pov_entity_id="p",
    )
    return [response.event async for response in stub.TakeTurn(request)]


def kinds(events: list[pb.TurnEvent]) -> list[str | None]:
    return [event.WhichOneof("event") for event in events]


def at_simulator(spoken: Spoken, url: str, tmp_path: Path) -> Config:
    own = config_for(tmp_path)
    return config_of(spoken, url, database_url=own.database_url, listen=own.listen)


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_a_narrator_acts_reads_and_rolls_and_then_tells(spoken: Spoken, tmp_path: Path) -> None:
    script = ScriptBuilder().respond_to_any(CALLS).then({"json": OUTCOME}).build()
    with served(script) as simulator:
        async with sessions_at(at_simulator(spoken, simulator.url, tmp_path), bind_gateway) as stub:
            events = await play(stub, "Let it rise.")
    assert [kind for kind in kinds(events) if kind != "narrative_chunk"] == [
        "accepted",
        "action_resolved",
        "rolled",
        "rolled",
        "world_resolved",
        "dialogue",
        "committed",
    ]
    assert kinds(events)[5] == "narrative_chunk"
    end = events[-1].committed
    assert (end.narrative, end.resolution) == ("It is told.", pb.RESOLUTION_NARRATED)
    assert [change.cause.kind for change in end.changes] == CAUSES
    assert (
        end.narrator_stats.tool_rounds,
        end.narrator_stats.tool_calls,
        end.narrator_stats.refused_calls,
    ) == (1, 3, 0)
    assert end.usage.calls == 2


async def test_what_a_narrator_may_not_change_is_put_right_where_the_gateway_is_elsewhere(
    tmp_path: Path,
) -> None:
    bad = OUTCOME | {"state_changes": [{"op": "set", "path": "state.private.q.x", "value": 1}]}
    script = ScriptBuilder().respond_to_any(CALLS).then({"json": bad}).then({"json": OUTCOME}).build()
    with served(script) as simulator:
        at_provider = config_of(PROVIDERS[0], simulator.url, listen="127.0.0.1:0")
        async with serve_registered(at_provider, [bind_gateway]) as gateway:
            config = config_for(tmp_path, gateway_address=gateway.address)
            async with sessions_at(config) as stub:
                events = await play(stub, "Let it rise.")
    end = events[-1].committed
    assert (end.narrative, end.resolution) == ("It is told.", pb.RESOLUTION_REPAIRED)
    assert (end.narrator_stats.refused_changes, end.narrator_stats.refused_answers) == (1, 1)
    assert [change.cause.kind for change in end.changes] == CAUSES
    assert end.usage.calls == 3


async def test_words_are_played_where_there_is_no_model(tmp_path: Path) -> None:
    async with sessions_at(config_for(tmp_path), bind_gateway) as stub:
        events = await play(stub, "I raise the alpha, now.")
    assert kinds(events)[:3] == ["accepted", "action_resolved", "world_resolved"]
    assert events[1].action_resolved.action_id == "act"
    end = events[-1].committed
    assert "Raise the alpha" in end.narrative
    assert (end.resolution, end.model) == (pb.RESOLUTION_NARRATED, "offline/offline")
    assert json.loads(events[1].action_resolved.changes[0].after) == 2


async def test_words_beside_a_chosen_action_leave_it_as_it_is(tmp_path: Path) -> None:
    async with sessions_at(config_for(tmp_path), bind_gateway) as stub:
        events = await play(stub, "Nothing that is known.", "other")
    assert [event.action_resolved.action_id for event in events if event.HasField("action_resolved")] == [
        "other",
    ]
    assert events[-1].HasField("committed")


def calls(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"tool": tool, "input": given}]}


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_words_that_are_not_understood_are_asked_about(spoken: Spoken, tmp_path: Path) -> None:
    script = ScriptBuilder().respond_to_any(calls("ask_player", question="Which of the two?")).build()
    with served(script) as simulator:
        async with sessions_at(at_simulator(spoken, simulator.url, tmp_path), bind_gateway) as stub:
            events = await play(stub, "Mumble.")
    assert kinds(events) == ["accepted", "rule_failed"]
    failure = events[-1].rule_failed
    assert (failure.code, failure.message) == ("NOT_UNDERSTOOD", "Which of the two?")
    assert failure.turn_abandoned


@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_words_without_an_action_let_time_pass(spoken: Spoken, tmp_path: Path) -> None:
    told = {"narrative": "Time passes."}
    script = ScriptBuilder().respond_to_any(calls("no_action")).then({"json": told}).build()
    with served(script) as simulator:
        async with sessions_at(at_simulator(spoken, simulator.url, tmp_path), bind_gateway) as stub:
            events = await play(stub, "I think about it.")
    assert "action_resolved" not in kinds(events)
    assert events[-1].committed.narrative == "Time passes."
    assert events[-1].committed.narrator_stats.refused_calls == 0


async def test_words_that_the_narrator_fails_to_narrate_spend_no_turn(tmp_path: Path) -> None:
    script = ScriptBuilder().respond_to_any({"text": "{"}).then({"text": "{"}).build()
    with served(script) as simulator:
        async with sessions_at(at_simulator(PROVIDERS[0], simulator.url, tmp_path), bind_gateway) as stub:
            words = await play(stub, "Let it rise.")
    with served(script) as simulator:
        async with sessions_at(at_simulator(PROVIDERS[0], simulator.url, tmp_path), bind_gateway) as stub:
            chosen = await play(stub, "", "other")
    assert kinds(words) == ["accepted", "rule_failed"]
    assert words[-1].rule_failed.code == "OUTCOME_INVALID"
    assert chosen[-1].committed.resolution == pb.RESOLUTION_SERVER_RESOLVED


async def test_an_answer_that_thoughts_used_up_is_asked_again_with_twice_the_room(tmp_path: Path) -> None:
    answers = [
        ScriptResponse("", stop=SimStopReason.LENGTH, usage=ScriptedUsage(output_tokens=9_216)),
        ScriptResponse(json.dumps({"narrative": "It is told."})),
    ]
    spoken = PROVIDERS[1]
    model = Answering(lambda _request: answers[len(model.requests) - 1])
    with serve_in_thread(model) as simulator:
        config = at_simulator(spoken, simulator.url, tmp_path)
        async with sessions_at(config, bind_gateway) as stub:
            events = await play(stub, "", "other")
    model.close()
    end = events[-1].committed
    assert (end.narrative, end.resolution) == ("It is told.", pb.RESOLUTION_REPAIRED)
    first, second = model.requests
    assert first.max_tokens == 1_024 + 8_192
    assert second.max_tokens == 2 * first.max_tokens + 8_192
    assert len(second.messages) == len(first.messages)
