"""Runs of agents whose server is killed in the middle of a phase, and which another server resumes."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.cli.agent_file import read_agent
from peripety.errors import UnavailableError
from support.gateway.agents import Agents, kinds, manifest, new_id, phase, run_request, tool
from support.llmsim.simulator import served
from support.repo.repository import ROOT
from support.servers.databases import PostgresqlProcess
from support.servers.processes import ServerProcess, environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.llmsim.simulator import Served


SCENARIO = """
counts = "shared"

[[responses]]
pattern = { type = "contains", text = "first" }
response = "one"

[[responses]]
pattern = { type = "contains", text = "call it" }
response = { tool_calls = [{ tool = "gauge", input = {} }] }

[[responses]]
pattern = { type = "any", tool_result = { type = "any" } }
failure = { type = "stall", after_chunks = 1, for_ms = 60000, times = 1 }
response = "the gauge says a lot"

[[responses]]
pattern = { type = "contains", text = "third" }
response = "three"
"""
AGENT = manifest(
    phase("a", "first"),
    phase("b", "call it", tool_names=["gauge"]),
    phase("c", "third {{phases.b}}"),
    tools=[tool("gauge")],
)


def settings(llm: Served, **others: str) -> dict[str, str]:
    return {
        "MODEL_PROVIDER": "openai",
        "OPENAI_API_BASE": f"{llm.url}/v1",
        "OPENAI_API_KEY": "k",
        "MODEL_NAME": "gpt-5",
        **others,
    }


async def until_half_way(client: Agents, server: ServerProcess) -> list[pb.RunEvent]:
    """Start a run, and kill its server when a part of the second answer of phase b has been sent."""
    events = await client.run(AGENT)
    (call,) = events[-1].tools_requested.calls
    request = pb.ContinueRunRequest(request_id=new_id(), run_id=events[0].run_id)
    request.results.add(call_id=call.call_id, text="42")
    with pytest.raises(UnavailableError):
        await killing(server, client.stub.ContinueRun(request), events)
    return events


async def killing(server: ServerProcess, call: Any, events: list[pb.RunEvent]) -> None:
    """Follow a run, and kill its server at the first event."""
    async for response in call:
        events.append(response.event)
        await asyncio.to_thread(server.kill)


def check(before: list[pb.RunEvent], after: list[pb.RunEvent], llm: Served) -> None:
    """Check that no sent event is lost, and that no answered request was sent again."""
    assert after[: len(before)] == before
    assert [event.sequence for event in after] == list(range(1, len(after) + 1))
    assert before[-1].text_delta
    # The phase restarts, and its first round is sent again.
    assert kinds(after[len(before) :]) == [
        "phase_started",
        "tool_call_delta",
        "text_delta",
        "phase_completed",
        "phase_started",
        "text_delta",
        "phase_completed",
        "completed",
    ]
    run = after[-1].completed
    texts = [result.completion.text for result in run.results]
    assert texts == ["one", "the gauge says a lot", "three"]
    asked = [(call.request.prompt, call.request.messages) for call in llm.simulator.captured]
    assert asked == [
        ("first", 1),
        ("call it", 3),
        ("", 5),
        ("", 5),
        ("third the gauge says a lot", 7),
    ]


@pytest.mark.slow(reason="kills processes at many points")
async def test_a_run_goes_on_where_it_was_when_its_server_was_killed(tmp_path: Path) -> None:
    with served(SCENARIO) as llm:
        with ServerProcess(tmp_path / "home", "gateway", settings(llm)) as server:
            async with Agents.connected(server.address) as client:
                before = await until_half_way(client, server)
        with ServerProcess(tmp_path / "home", "gateway", settings(llm)) as server:
            async with Agents.connected(server.address) as client:
                after = await client.resume(before[0].run_id)
            assert server.stop() == 0
    check(before, after, llm)
    assert "Traceback" not in server.log


@pytest.mark.slow(reason="kills processes at many points")
async def test_a_replica_takes_a_run_up_when_the_one_that_worked_on_it_was_killed(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        database = stack.enter_context(PostgresqlProcess())
        llm = stack.enter_context(served(SCENARIO))
        shared = settings(llm, PERIPETY_DATABASE_URL=stack.enter_context(database.database()))
        one, two = (
            stack.enter_context(ServerProcess(tmp_path / name, "gateway", shared)) for name in ("one", "two")
        )
        here = await stack.enter_async_context(Agents.connected(one.address))
        there = await stack.enter_async_context(Agents.connected(two.address))

        before = await until_half_way(here, one)
        told = await asyncio.gather(there.resume(before[0].run_id), there.resume(before[0].run_id))
        assert told[0] == told[1]
        check(before, told[0], llm)
        assert two.stop() == 0


@pytest.mark.slow(reason="kills processes at many points")
async def test_a_replica_that_does_not_work_on_a_run_tells_it_all_the_same(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        database = stack.enter_context(PostgresqlProcess())
        llm = stack.enter_context(served(SCENARIO))
        shared = settings(llm, PERIPETY_DATABASE_URL=stack.enter_context(database.database()))
        servers = [
            stack.enter_context(ServerProcess(tmp_path / name, "gateway", shared)) for name in ("one", "two")
        ]
        one, two = [await stack.enter_async_context(Agents.connected(server.address)) for server in servers]

        request = run_request(manifest(phase("a", "first"), phase("b", "third")))
        here, there = await asyncio.gather(
            *(one.run(request.manifest, request.request_id), two.run(request.manifest, request.request_id)),
        )
        assert here == there
        assert len(list(llm.simulator.captured)) == 2
        await two.cancel((await one.run(AGENT))[0].run_id)


@pytest.mark.slow(reason="starts a server and a client")
async def test_the_client_in_the_guide_hears_a_run_to_its_end(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "run-agents.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    with (
        served('default_response = "any"') as llm,
        ServerProcess(tmp_path / "home", "gateway", settings(llm)) as server,
    ):
        assert "127.0.0.1:50051" in program
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program.replace("127.0.0.1:50051", server.address)],
            check=True,
            capture_output=True,
            text=True,
            env=environment(tmp_path),
        )
    assert done.stdout.splitlines()[-1] == "7 completed"


def test_the_files_in_the_guide_describe_agents(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "run-agents.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```toml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "verdict.schema.json").write_text('{"type": "object"}')
    found = []
    for text in texts:
        (tmp_path / "agent.toml").write_text(text)
        found.append([one.phase_id for one in read_agent(tmp_path / "agent.toml").manifest.phases])
    assert found == [["outline", "verdict"], ["tidy"]]
