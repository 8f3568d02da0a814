"""Runs of two processes on one database, with a clock and answers that the test gives."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety.agent.manifest import (
    AgentRunEnded,
    AgentRunState,
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseStarted,
    ToolsRequested,
)
from peripety.agent.runs import AgentRuns
from peripety.agent.store import AgentRunStore
from peripety.core.idempotency.store import RequestKey
from peripety.errors import InternalError, UnavailableError
from peripety.gateway.conversations.manager import ConversationManager
from peripety.gateway.conversations.store import ConversationStore
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.types.message import ChatMessage, ChatRole, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import GenerationOptions
from peripety.gateway.types.response import Completion, StopReason, TextDelta, Usage
from support.gateway.fake_gateway import GatedGateway, answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.agent.manifest import AgentRunEvent
    from peripety.core.runs.types import RecordedEvent
    from peripety.core.storage.database import Database


LEASE = 5_000_000
DAY = 24 * 3600 * 1_000_000
ONE = Manifest("one", (Phase("a", "first"),))


class Replica:
    """A process with its own model."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.gateway = GatedGateway()
        self.store = AgentRunStore(database, clock.now)
        conversations = ConversationManager(
            self.gateway,
            ConversationStore(database, clock.now),
            lambda _request: 0,
            clock.now,
        )
        self.runs = AgentRuns(self.store, conversations, clock.now)

    async def start(self, manifest: Manifest = ONE) -> str:
        return (await self.runs.start(manifest, {}, None, named())).run_id

    def following(self, run_id: str, after: int = 0) -> asyncio.Task[list[AgentRunEvent]]:
        return asyncio.ensure_future(gathered(self.runs.follow(run_id, after)))


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000

    def now(self) -> int:
        self.time += 1
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def replicas(database: Database, clock: Clock) -> AsyncIterator[tuple[Replica, Replica]]:
    both = Replica(database, clock), Replica(database, clock)
    yield both
    for one in both:
        await one.runs.aclose()


def named() -> RequestKey:
    return RequestKey(str(uuid.uuid4()), "d")


async def gathered(events: AsyncIterator[RecordedEvent[AgentRunEvent]]) -> list[AgentRunEvent]:
    return [recorded.event async for recorded in events]


def texts(events: list[AgentRunEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


async def recorded(one: Replica, run_id: str, events: int) -> None:
    """Wait until so many events are recorded."""
    async for event in one.runs.follow(run_id):
        if event.sequence == events:
            return


async def test_pieces_that_come_together_are_recorded_as_one(replicas: tuple[Replica, Replica]) -> None:
    one, _ = replicas
    run_id = await one.start()
    call = await one.gateway.call(1)
    for word in ("a", "b", "c"):
        call.write(word)
    call.finish(answer("abc"))
    told = await one.following(run_id)
    assert texts(told) == ["abc"]
    assert [type(event) for event in told] == [PhaseStarted, TextDelta, PhaseCompleted, AgentRunEnded]


async def test_pieces_are_told_while_the_answer_is_still_being_written(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    run_id = await one.start()
    call = await one.gateway.call(1)
    call.write("a")
    await asyncio.gather(recorded(one, run_id, 2), recorded(other, run_id, 2))
    call.finish(answer("a"))
    assert await one.following(run_id) == await other.following(run_id)


async def test_nobody_takes_a_run_up_that_is_worked_on(
    replicas: tuple[Replica, Replica],
    clock: Clock,
) -> None:
    one, other = replicas
    run_id = await one.start()
    call = await one.gateway.call(1)
    following = other.following(run_id)
    call.write("a")
    await recorded(other, run_id, 2)
    call.finish(answer("a"))
    await following
    assert not other.gateway.calls


async def test_a_process_that_lost_its_lease_changes_nothing_any_more(
    replicas: tuple[Replica, Replica],
    clock: Clock,
) -> None:
    one, other = replicas
    run_id = await one.start()
    late = await one.gateway.call(1)
    await recorded(one, run_id, 1)
    clock.time += 2 * LEASE
    following = other.following(run_id)
    call = await other.gateway.call(1)
    late.write("never told")
    await late.closing.wait()
    call.write("b")
    call.finish(answer("b"))
    told = await following
    assert texts(told) == ["b"]
    run = await one.runs.get(run_id)
    assert [result.completion.text for result in run.results] == ["b"]
    assert await one.following(run_id) == told


async def test_an_answer_that_the_former_holder_of_the_lease_committed_is_the_answer(
    replicas: tuple[Replica, Replica],
    clock: Clock,
) -> None:
    one, other = replicas
    run_id = await one.start()
    late = await one.gateway.call(1)
    await recorded(one, run_id, 1)
    clock.time += 2 * LEASE
    following = other.following(run_id)
    call = await other.gateway.call(1)
    late.finish(answer("late"))
    await late.closing.wait()
    call.write("void")
    call.finish(answer("void"))
    told = await following
    last = max(at for at, event in enumerate(told) if isinstance(event, PhaseStarted))
    assert texts(told[last:]) == ["late"]
    (ended,) = (event for event in told if isinstance(event, AgentRunEnded))
    assert [result.completion.text for result in ended.run.results] == ["late"]


async def test_a_process_that_stops_gives_its_runs_away_at_once(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    run_id = await one.start()
    await one.gateway.call(1)
    following = one.following(run_id)
    await recorded(one, run_id, 1)
    await one.runs.aclose()
    with pytest.raises(UnavailableError):
        await following
    taken = other.following(run_id)
    (await other.gateway.call(1)).finish(answer("b"))
    assert [type(event) for event in await taken] == [
        PhaseStarted,
        PhaseStarted,
        PhaseCompleted,
        AgentRunEnded,
    ]


async def waiting(one: Replica) -> tuple[str, ToolCall]:
    """A run that waits for a tool."""
    tools = (Tool("gauge", "d", {"type": "object"}),)
    run_id = await one.start(Manifest("tools", (Phase("a", "first", tool_names=("gauge",)),), tools=tools))
    call = ToolCall("c", "gauge", "{}")
    message = ChatMessage(ChatRole.ASSISTANT, (call,))
    (await one.gateway.call(1)).finish(Completion(message, None, Usage(1, 1), StopReason.TOOL_USE, "m", "p"))
    assert (await one.following(run_id))[-1] == ToolsRequested("a", (call,))
    return run_id, call


async def test_a_run_may_wait_for_its_tools_for_days(replicas: tuple[Replica, Replica], clock: Clock) -> None:
    one, _ = replicas
    run_id, _ = await waiting(one)
    clock.time += 3 * DAY
    other = await one.start()
    (await one.gateway.call(2)).finish(answer("in between"))
    await one.following(other)
    following = one.following((await one.runs.continue_(run_id, [ToolResult("c", "42")], named())).run_id)
    (await one.gateway.call(3)).finish(answer("done"))
    (ended,) = (event for event in await following if isinstance(event, AgentRunEnded))
    assert ended.run.results[0].completion.text == "done"


async def test_a_cancelled_run_says_what_it_used(replicas: tuple[Replica, Replica]) -> None:
    one, _ = replicas
    run_id, _ = await waiting(one)
    await one.runs.continue_(run_id, [ToolResult("c", "42")], named())
    await one.gateway.call(2)
    assert (await one.runs.cancel(run_id, named())).progress.spent.calls == 1


async def test_a_round_that_was_answered_is_told_again_and_not_asked_again(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    run_id, call = await waiting(one)
    await one.runs.continue_(run_id, [ToolResult("c", "42")], named())
    await one.gateway.call(2)
    await one.runs.aclose()
    following = other.following(run_id)
    again = await other.gateway.call(1)
    assert [part for message in again.request.messages for part in message.parts][1:] == [
        call,
        ToolResult("c", "42"),
    ]
    again.finish(answer("done"))
    (ended,) = (event for event in await following if isinstance(event, AgentRunEnded))
    assert ended.run.results[0].spent.calls == 2
    assert len(other.gateway.calls) == 1


async def test_a_defect_fails_the_run_and_tells_nothing_of_itself(
    replicas: tuple[Replica, Replica],
) -> None:
    one, _ = replicas
    run_id = await one.start()
    (await one.gateway.call(1)).fail(ValueError("secret"))
    (*_, ended) = await one.following(run_id)
    assert isinstance(ended, AgentRunEnded)
    assert ended.run.state is AgentRunState.FAILED
    assert isinstance(ended.run.error, InternalError)
    assert "secret" not in str(ended.run.error)


async def test_a_database_that_fails_interrupts_a_run_and_does_not_fail_it(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    run_id = await one.start()
    fault = UnavailableError("the disk is full", code="STORAGE_UNAVAILABLE")
    (await one.gateway.call(1)).fail(fault)
    following = other.following(run_id)
    (await other.gateway.call(1)).finish(answer("b"))
    (*_, ended) = await following
    assert isinstance(ended, AgentRunEnded)
    assert ended.run.state is AgentRunState.COMPLETED


TOOLS = (Tool("look", "Looks.", {"type": "object"}),)


async def test_it_is_said_if_the_tools_of_a_run_turn_reasoning_off(
    replicas: tuple[Replica, Replica],
    caplog: pytest.LogCaptureFixture,
) -> None:
    (replica, _) = replicas
    catalog = ModelCatalog.load()
    replica.runs._find_model = lambda name: catalog.find("openai", name)
    for number, model in enumerate(("gpt-5.5", "gpt-5.2"), start=1):
        run_id = await replica.start(replace(ONE, tools=TOOLS, options=GenerationOptions(model=model)))
        (await replica.gateway.call(number)).finish(answer("Done."))
        await replica.following(run_id)
    (record,) = [each for each in caplog.records if "does not reason" in each.message]
    assert vars(record)["model"] == "openai/gpt-5.5"
    assert vars(record)["use"] == "phase 'a' of an agent with tools"


async def test_the_limit_of_a_phase_is_that_of_its_answer(replicas: tuple[Replica, Replica]) -> None:
    (replica, _) = replicas
    run_id = await replica.start(replace(ONE, options=GenerationOptions(max_output_tokens=50)))
    call = await replica.gateway.call(1)
    assert (call.request.max_output_tokens, call.request.answer_tokens) == (None, 50)
    call.finish(answer("Done."))
    await replica.following(run_id)
