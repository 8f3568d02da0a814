"""Agents over gRPC, with the scripted LLM behind the gateway."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from peripety.agent.setup import register_service as register_agents
from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from peripety.gateway.setup import register_service as register_gateway
from peripety.server.app import serve_registered
from support.gateway.agents import Agents, kinds, manifest, new_id, phase, run_request, schema, tool
from support.gateway.fake_server import DONE, Reply, Request, answering, delta, finish, upstream
from support.llmsim.simulator import served
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.server.app import ServerApp
    from support.llmsim.simulator import Served


SCENARIO = """
[[responses]]
pattern = { type = "contains", text = "slow" }
response = { text = "it takes a while", delay_ms = 60000 }

[[responses]]
pattern = { type = "contains", text = "fail" }
failure = { type = "auth_error" }

[[responses]]
pattern = { type = "contains", text = "call it" }
response = { tool_calls = [{ tool = "gauge", input = { a = 1 } }] }

[[responses]]
pattern = { type = "any", tool_result = { type = "contains", text = "cannot be called" } }
response = "without it"

[[responses]]
pattern = { type = "any", tool_result = { type = "contains", text = "again" } }
response = { tool_calls = [{ tool = "gauge", input = { a = 2 } }] }

[[responses]]
pattern = { type = "any", tool_result = { type = "any" } }
response = "measured"

[[responses]]
pattern = { type = "contains", text = "count" }
response = { json = { total = 3 } }

[[responses]]
pattern = { type = "contains", text = "second" }
response = "two"

[[responses]]
pattern = { type = "contains", text = "other" }
response = "three"

[[responses]]
pattern = { type = "contains", text = "first" }
response = "one"
"""
GAUGE = {"tools": [tool("gauge"), tool("other_tool")]}
TWO = manifest(phase("a", "first {{x}}"), phase("b", "second: {{phases.a}}"), system="s")


def model(llm: Served) -> dict[str, Any]:
    return {
        "model_provider": ProviderName.OPENAI,
        "openai_api_base": f"{llm.url}/v1",
        "openai_api_key": "k",
        "model_name": "gpt-5",
    }


@asynccontextmanager
async def agents(home: Path, **settings: Any) -> AsyncIterator[tuple[Agents, ServerApp]]:
    """A gateway with these settings, and a client of its agents."""
    async with (
        serve_registered(config_for(home, **settings), [register_gateway, register_agents]) as app,
        Agents.connected(app.address) as client,
    ):
        yield client, app


@pytest.fixture
async def scripted(tmp_path: Path) -> AsyncIterator[tuple[Agents, Served]]:
    with served(SCENARIO) as llm:
        async with agents(tmp_path, **model(llm)) as (client, _):
            yield client, llm


async def begun(client: Agents, agent: pb.Manifest, **inputs: str) -> str:
    """Start a run, wait for its first event, and lose the connection."""
    call = client.stub.RunAgent(run_request(agent, **inputs))
    async for response in call:
        return response.event.run_id
    raise AssertionError


async def until_phase(client: Agents, run_id: str, phase_id: str) -> None:
    """Wait until a phase has begun."""
    async for response in client.stub.ResumeRun(pb.ResumeRunRequest(run_id=run_id)):
        if response.event.phase_started.phase_id == phase_id:
            return


# ---- what a run is


async def test_phases_are_answered_in_order_and_their_events_are_numbered(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    events = await client.run(TWO, x="X")
    told = ["phase_started", "text_delta", "phase_completed"]
    assert kinds(events) == [*told, *told, "completed"]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    run = events[-1].completed
    assert [(result.input, result.completion.text) for result in run.results] == [
        ("first X", "one"),
        ("second: one", "two"),
    ]
    assert (run.state, run.phase_id, run.last_sequence) == (
        pb.RUN_STATE_COMPLETED,
        "",
        events[-1].sequence,
    )
    assert list(run.manifest.phases) == list(TWO.phases)
    assert await client.get(run.run_id) == run


async def test_usage_is_told_for_each_phase_and_for_the_run(scripted: tuple[Agents, Served]) -> None:
    client, llm = scripted
    run = (await client.run(TWO, x="X"))[-1].completed
    (account,) = llm.simulator.accounts
    assert run.usage.calls == sum(result.usage.calls for result in run.results) == 2
    assert run.usage.cost.pico_units == sum(result.usage.cost.pico_units for result in run.results)
    assert run.usage.cost.pico_units == account.amount


async def test_each_phase_is_asked_with_everything_before_it_and_the_prefix_stays_as_it_was(
    tmp_path: Path,
) -> None:
    answers = iter(("one", "two", "three"))

    async def answer(_: Request, reply: Reply) -> None:
        await reply.stream(delta(next(answers)), finish(), DONE)

    agent = manifest(
        phase("a", "first"),
        phase("b", "second", system="be b"),
        phase("c", "third"),
        system="s",
        **GAUGE,
    )
    async with (
        upstream(answer) as server,
        agents(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        ) as (client, _),
    ):
        await client.run(agent)
    bodies = [request.body for request in server.requests]
    first, second, third = (json.dumps(body["messages"])[:-1] for body in bodies)
    assert second.startswith(first)
    assert third.startswith(second)
    said = [(message["role"], message["content"]) for message in bodies[2]["messages"]]
    assert said == [
        ("system", "s"),
        ("user", "first"),
        ("assistant", "one"),
        ("user", "be b\n\nsecond"),
        ("assistant", "two"),
        ("user", "third"),
    ]
    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]


async def test_what_is_read_from_the_prompt_cache_grows_from_phase_to_phase(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    long = "alpha beta gamma " * 1_000
    phases = [phase(name, f"first {name} {long}") for name in ("a", "b", "c")]
    run = (await client.run(manifest(*phases)))[-1].completed
    reads = [result.usage.tokens.cache_read_tokens for result in run.results]
    assert reads[0] == 0
    assert 0 < reads[1] < reads[2]


async def test_a_phase_with_a_schema_has_a_value_which_later_phases_can_quote(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    counted = phase("a", "count", schema=schema("counted", total={"type": "integer"}))
    run = (await client.run(manifest(counted, phase("b", "second {{phases.a}}"))))[-1].completed
    assert json.loads(run.results[0].completion.value) == {"total": 3}
    assert run.results[1].input == 'second {"total":3}'


async def test_what_was_filled_in_is_not_looked_through_again(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    agent = manifest(phase("a", "first {{x}} { {{y}} }"))
    run = (await client.run(agent, x="{{y}}", y="{{phases.a}}"))[-1].completed
    assert run.results[0].input == "first {{y}} { {{phases.a}} }"


async def test_options_of_a_phase_go_before_those_of_the_manifest(tmp_path: Path) -> None:
    agent = manifest(
        phase("a", "first", options=gateway.GenerationOptions(temperature=0.5)),
        phase("b", "second"),
        options=gateway.GenerationOptions(temperature=0.25, max_output_tokens=9),
    )
    async with (
        upstream(answering("ok")) as server,
        agents(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        ) as (client, _),
    ):
        run = (await client.run(agent))[-1].completed
    asked = [(request.body["temperature"], request.body["max_tokens"]) for request in server.requests]
    assert asked == [(0.5, 9), (0.25, 9)]
    assert (run.manifest.options, list(run.manifest.phases)) == (agent.options, list(agent.phases))


async def test_everything_that_is_wrong_is_named_before_anything_runs(
    scripted: tuple[Agents, Served],
) -> None:
    client, llm = scripted
    agent = manifest(
        phase("a", "{{missing}} {{phases.b}}", tool_names=["nothing"]),
        phase("a", " ", options=gateway.GenerationOptions(temperature=9)),
        phase("Not Snake", "x", schema=gateway.ResponseSchema(name="n", document=b'{"type": 1}')),
        phase("c", "x", schema=gateway.ResponseSchema(name="n", document=b"{}", advisory=True)),
        name="",
    )
    with pytest.raises(InvalidArgumentError) as caught:
        await client.run(agent, unused="x")
    assert [violation.field for violation in caught.value.violations] == [
        "manifest.name",
        "manifest.phases[0].input_template",
        "manifest.phases[0].input_template",
        "manifest.phases[0].tool_names[0]",
        "manifest.phases[1].input_template",
        "manifest.phases[1].options.temperature",
        "manifest.phases[1].phase_id",
        "manifest.phases[2].phase_id",
        "manifest.phases[2].schema.document",
        "manifest.phases[3].schema.advisory",
        "inputs[unused]",
    ]
    assert not list(llm.simulator.captured)


# ---- tools


async def test_a_run_waits_for_its_tools_and_goes_on_with_their_results(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    agent = manifest(phase("a", "call it", tool_names=["gauge"]), phase("b", "second {{phases.a}}"), **GAUGE)
    asked = await client.run(agent)
    assert kinds(asked) == ["phase_started", "tool_call_delta", "tools_requested"]
    requested = asked[-1].tools_requested
    (call,) = requested.calls
    assert (requested.phase_id, call.name, json.loads(call.arguments)) == ("a", "gauge", {"a": 1})
    waiting = await client.get(asked[0].run_id)
    assert (waiting.state, list(waiting.pending_calls)) == (pb.RUN_STATE_WAITING_FOR_TOOLS, [call])
    assert await client.resume(waiting.run_id, asked[-1].sequence) == []

    done = await client.go_on(waiting.run_id, **{call.call_id: "42"})
    assert done[0].sequence == asked[-1].sequence + 1
    run = done[-1].completed
    assert [result.completion.text for result in run.results] == ["measured", "two"]
    assert run.results[0].usage.calls == 2


async def test_a_result_for_each_call_is_wanted_and_no_other(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    asked = await client.run(manifest(phase("a", "call it", tool_names=["gauge"]), **GAUGE))
    (call,) = asked[-1].tools_requested.calls
    with pytest.raises(InvalidArgumentError) as caught:
        await client.go_on(asked[0].run_id, stray="x")
    assert [violation.field for violation in caught.value.violations] == ["results", "results[0].call_id"]
    assert call.call_id in str(caught.value)
    await client.go_on(asked[0].run_id, **{call.call_id: "42"})
    with pytest.raises(FailedPreconditionError) as caught_late:
        await client.go_on(asked[0].run_id, **{call.call_id: "42"})
    assert caught_late.value.code == "NOT_WAITING_FOR_TOOLS"


async def test_a_call_that_the_phase_does_not_allow_is_refused_by_the_engine_and_the_phase_goes_on(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    agent = manifest(phase("a", "call it", tool_names=["other_tool"]), **GAUGE)
    run = (await client.run(agent))[-1].completed
    assert run.results[0].completion.text == "without it"


async def test_after_the_last_round_the_model_has_to_answer(tmp_path: Path) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        if request.body.get("tool_choice") == "none":
            await reply.stream(delta("enough"), finish(), DONE)
        else:
            await reply.stream(called(len(request.body["messages"])), finish("tool_calls"), DONE)

    agent = manifest(phase("a", "x", tool_names=["gauge"], max_tool_rounds=2), **GAUGE)
    async with (
        upstream(answer) as server,
        agents(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        ) as (client, _),
    ):
        events = await client.run(agent)
        for _ in range(2):
            (call,) = events[-1].tools_requested.calls
            events = await client.go_on(events[-1].run_id, **{call.call_id: "again"})
    assert events[-1].completed.results[0].completion.text == "enough"
    assert len(server.requests) == 3


async def test_a_model_that_calls_tools_without_end_fails_the_phase(tmp_path: Path) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        await reply.stream(called(len(request.body["messages"])), finish("tool_calls"), DONE)

    async with (
        upstream(answer) as server,
        agents(
            tmp_path,
            model_provider=ProviderName.GENERIC,
            openai_api_base=server.base_url,
            model_name="m",
        ) as (client, _),
    ):
        events = await client.run(manifest(phase("a", "x", max_tool_rounds=1), **GAUGE))
    assert events[-1].failed.error.reason == "TOOL_ROUNDS_USED_UP"
    assert len(server.requests) == 2


def called(number: int) -> bytes:
    """A piece of a stream with a call of `gauge`."""
    function = {"name": "gauge", "arguments": "{}"}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'tool_calls': [call]}}]})}\n\n".encode()


# ---- ends


async def test_a_phase_that_fails_ends_the_run_and_keeps_what_was_done(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    events = await client.run(manifest(phase("a", "first"), phase("b", "fail"), phase("c", "second")))
    run = events[-1].failed
    assert (run.state, run.phase_id, run.error.reason) == (
        pb.RUN_STATE_FAILED,
        "b",
        "PROVIDER_REFUSED_KEY",
    )
    assert run.error.code == grpc.StatusCode.FAILED_PRECONDITION.value[0]
    assert [result.phase_id for result in run.results] == ["a"]
    assert await client.resume(run.run_id) == events


async def test_a_run_that_has_used_up_its_budget_fails(scripted: tuple[Agents, Served]) -> None:
    client, llm = scripted
    run = (await client.run(TWO, budget=common.Budget(max_calls=1), x="X"))[-1].failed
    assert (run.phase_id, run.error.reason) == ("b", "BUDGET_EXHAUSTED")
    assert len(list(llm.simulator.captured)) == 1


async def test_a_run_that_works_for_too_long_fails(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    budget = common.Budget()
    budget.max_time.FromMilliseconds(50)
    run = (await client.run(manifest(phase("a", "slow")), budget=budget))[-1].failed
    assert (run.error.reason, run.budget) == ("BUDGET_EXHAUSTED", budget)


async def test_a_cancelled_run_stops_and_says_so_to_its_followers(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    run_id = await begun(client, manifest(phase("a", "slow")))
    following = asyncio.ensure_future(client.resume(run_id))
    request_id = new_id()
    run = await client.cancel(run_id, request_id)
    assert run.state == pb.RUN_STATE_CANCELLED
    assert (await following)[-1].failed == run
    assert await client.cancel(run_id, request_id) == run
    with pytest.raises(FailedPreconditionError) as caught:
        await client.cancel(run_id)
    assert caught.value.code == "RUN_ENDED"


async def test_a_deleted_run_is_gone_with_its_conversation(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    run = (await client.run(TWO, x="X"))[-1].completed
    request_id = new_id()
    await client.delete(run.run_id, request_id)
    await client.delete(run.run_id, request_id)
    with pytest.raises(NotFoundError):
        await client.get(run.run_id)
    conversations = GatewayServiceStub(client.channel)
    with pytest.raises(NotFoundError):
        await conversations.GetConversation(
            gateway.GetConversationRequest(conversation_id=run.conversation_id),
        )


# ---- following


async def test_a_run_outlives_its_stream(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    run_id = await begun(client, TWO, x="X")
    events = await client.resume(run_id)
    assert events[-1].HasField("completed")
    assert await client.resume(run_id, 2) == events[2:]
    with pytest.raises(InvalidArgumentError):
        await client.resume(run_id, events[-1].sequence + 1)


async def test_the_same_request_follows_the_same_run(scripted: tuple[Agents, Served]) -> None:
    client, llm = scripted
    request_id = new_id()
    events = await client.run(TWO, request_id, x="X")
    assert await client.run(TWO, request_id, x="X") == events
    assert len(list(llm.simulator.captured)) == 2
    with pytest.raises(AlreadyExistsError):
        await client.run(TWO, request_id, x="Y")


async def test_results_that_are_handed_in_twice_count_once(scripted: tuple[Agents, Served]) -> None:
    client, llm = scripted
    asked = await client.run(manifest(phase("a", "call it", tool_names=["gauge"]), **GAUGE))
    request_id, results = new_id(), {asked[-1].tools_requested.calls[0].call_id: "42"}
    done = await client.go_on(asked[0].run_id, request_id, **results)
    assert await client.go_on(asked[0].run_id, request_id, **results) == done
    assert len(list(llm.simulator.captured)) == 2


async def test_a_server_that_stops_gives_its_runs_to_the_next_one(tmp_path: Path) -> None:
    with served(SCENARIO) as llm:
        async with agents(tmp_path, **model(llm)) as (client, app):
            events = await client.run(manifest(phase("a", "call it", tool_names=["gauge"]), **GAUGE))
            run_id = await begun(client, manifest(phase("a", "first"), phase("b", "slow")))
            following = asyncio.ensure_future(client.resume(run_id))
            await until_phase(client, run_id, "b")
            await app.drain(5)
            with pytest.raises(UnavailableError) as caught:
                await following
            assert caught.value.code == "SERVER_SHUTTING_DOWN"
        async with agents(tmp_path, **model(llm)) as (client, _):
            assert (await client.get(events[0].run_id)).state == pb.RUN_STATE_WAITING_FOR_TOOLS
            call = client.stub.ResumeRun(pb.ResumeRunRequest(run_id=run_id))
            told = []
            async for response in call:
                told.append(response.event)
                if kinds(told).count("phase_started") == 3:
                    break
            await client.cancel(run_id)
    assert kinds(told).count("phase_completed") == 1


# ---- doing a phase anew


async def test_a_phase_is_done_anew_over_the_same_history_as_a_new_run(
    scripted: tuple[Agents, Served],
) -> None:
    client, llm = scripted
    agent = manifest(phase("a", "first {{x}}"), phase("b", "second"), phase("c", "second {{phases.b}}"))
    before = (await client.run(agent, x="X"))[-1].completed
    request_id = new_id()
    events = await client.rerun(before.run_id, phase("b", "other {{phases.a}}"), request_id, following=True)
    assert events[0].phase_started.phase_id == "b"
    run = events[-1].completed
    assert run.run_id != before.run_id
    assert (run.parent_run_id, run.results[0]) == (before.run_id, before.results[0])
    assert [result.completion.text for result in run.results] == ["one", "three", "two"]
    assert run.results[2].input == "second three"
    assert run.usage.calls == 2
    assert [call.request.messages for call in llm.simulator.captured] == [1, 3, 5, 3, 5]
    assert await client.get(before.run_id) == before
    assert (
        await client.rerun(before.run_id, phase("b", "other {{phases.a}}"), request_id, following=True)
        == events
    )


async def test_only_the_phase_is_done_anew_unless_the_following_are_wanted(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    before = (await client.run(TWO, x="X"))[-1].completed
    run = (await client.rerun(before.run_id, phase("a", "other {{x}}")))[-1].completed
    assert [(result.phase_id, result.completion.text) for result in run.results] == [("a", "three")]
    assert run.conversation_id != before.conversation_id


async def test_a_failed_phase_can_be_done_anew_and_no_phase_that_was_not_reached(
    scripted: tuple[Agents, Served],
) -> None:
    client, _ = scripted
    agent = manifest(phase("a", "first"), phase("b", "fail"), phase("c", "second"))
    failed = (await client.run(agent))[-1].failed
    with pytest.raises(FailedPreconditionError) as unreached:
        await client.rerun(failed.run_id, phase("c", "second"))
    assert unreached.value.code == "PHASE_NOT_REACHED"
    with pytest.raises(NotFoundError) as unknown:
        await client.rerun(failed.run_id, phase("d", "second"))
    assert unknown.value.code == "UNKNOWN_PHASE"
    with pytest.raises(InvalidArgumentError) as wrong:
        await client.rerun(failed.run_id, phase("b", "{{phases.c}}"))
    assert [violation.field for violation in wrong.value.violations] == ["phase.input_template"]
    run = (await client.rerun(failed.run_id, phase("b", "other"), following=True))[-1].completed
    assert [result.completion.text for result in run.results] == ["one", "three", "two"]


# ---- lists


async def test_runs_are_listed_newest_first_and_by_their_state(scripted: tuple[Agents, Served]) -> None:
    client, _ = scripted
    done = [(await client.run(TWO, x=str(number)))[-1].completed for number in range(3)]
    failed = (await client.run(manifest(phase("a", "fail"), name="other")))[-1].failed
    page = await client.stub.ListRuns(pb.ListRunsRequest(page_size=3))
    rest = await client.stub.ListRuns(pb.ListRunsRequest(page_size=3, page_token=page.next_page_token))
    assert [one.run_id for one in (*page.runs, *rest.runs)] == [
        run.run_id for run in (failed, *reversed(done))
    ]
    assert rest.next_page_token == ""
    (only,) = (await client.stub.ListRuns(pb.ListRunsRequest(state=pb.RUN_STATE_FAILED))).runs
    assert (only.name, only.completed_phases, only.total_phases) == ("other", 0, 1)
