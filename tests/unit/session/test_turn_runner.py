from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.core.storage.database import Database
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from peripety.gateway.types.message import ChatRole
from peripety.session.events import Accepted, Committed, Degraded, RuleFailed
from peripety.session.store.session_store import SessionStore
from peripety.session.types import NewSession, PlayerAction, Resolution
from support.engine.specs import action, at_most, document, never
from support.gateway.fake_gateway import SILENCE, FakeGateway, saying
from support.session.sessions import OneScenario, kinds, new_id, only, outcome, sessions_over, table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent
    from peripety.session.visibility import TurnEventView
    from support.session.sessions import Table


WHOLE_TURN = ["Accepted", "ActionResolved", "WorldResolved", "NarrativeChunk", "Committed"]
ENTITIES = [{"id": "p", "playable": True}, {"id": "q", "playable": True}]


async def chain_of(game: Table) -> str:
    """The chain hash as the recorded turns give it."""
    session = (await game.now()).session
    chain = engine.start_hash_chain(session.seed, session.spec_hash)
    for turn in await game.store.list_turns(session.session_id, 0, 1_000):
        chain = engine.extend_hash_chain(chain, turn.record)
    return chain


async def test_mechanics_come_before_prose_and_the_commit_comes_last(database_url: str) -> None:
    async with table(database_url, document()) as game:
        events = await game.play(1, "act")
    assert kinds(events) == WHOLE_TURN
    assert [seen.sequence for seen in events] == [1, 2, 3, 4, 5]
    assert {seen.turn for seen in events} == {1}


async def test_mechanics_do_not_wait_for_the_narrator(database_url: str) -> None:
    async with table(database_url, document(), FakeGateway([SILENCE])) as game:
        async with aclosing(game.sessions.turn_runner.run(game.request(1, "act"))) as events:
            first = [await anext(events) for _ in range(3)]
        assert kinds(first) == WHOLE_TURN[:3]


async def test_the_session_moves_on_by_what_was_committed(database_url: str) -> None:
    async with table(database_url, document()) as game:
        before = (await game.now()).session
        (committed,) = only(await game.play(1, "act"), Committed)
        after = await game.now()
    assert (before.turn, after.session.turn) == (0, 1)
    assert after.session.state_hash == committed.state_hash != before.state_hash
    assert after.session.chain_hash == committed.chain_hash != before.chain_hash
    assert after.session.usage == committed.usage
    assert after.session.last_sequence == 5
    assert json.loads(after.state)["a"] == 11
    assert after.legal_actions == committed.legal_actions == ("act",)


async def test_the_recorded_turns_give_the_chain_hash(database_url: str) -> None:
    async with table(database_url, document()) as game:
        for turn in range(1, 5):
            await game.play(turn, *["act"] * (turn % 3))
        assert (await game.now()).session.chain_hash == await chain_of(game)


async def test_sequences_go_on_from_turn_to_turn_without_a_gap(database_url: str) -> None:
    async with table(database_url, document()) as game:
        events = [seen for turn in range(1, 4) for seen in await game.play(turn, "act")]
    assert [seen.sequence for seen in events] == list(range(1, len(events) + 1))


async def test_waiting_is_a_turn(database_url: str) -> None:
    async with table(database_url, document()) as game:
        assert kinds(await game.play(1)) == ["Accepted", "WorldResolved", "NarrativeChunk", "Committed"]


async def test_a_turn_whose_actions_are_all_rejected_is_not_taken_and_says_why(database_url: str) -> None:
    gateway = FakeGateway(outcome())
    shut = action("no", preconditions={"<": [1, 0]})
    async with table(database_url, document(actions=[shut, action("act")]), gateway) as game:
        before = await game.now()
        request = game.request(1, "no")
        events = await game.take(request)
        assert kinds(events) == ["Accepted", "ActionResolved", "RuleFailed"]
        assert only(events, RuleFailed)[0].turn_abandoned
        assert await game.now() == before
        assert gateway.requests == []
        assert kinds(await game.take(request)) == kinds(events)
        assert kinds(await game.play(1, "no", "act"))[-1] == "Committed"


async def test_a_stale_turn_names_the_one_that_comes_next(database_url: str) -> None:
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        for turn in (1, 3):
            with pytest.raises(ConflictError, match="the next turn of the session is 2") as caught:
                await game.play(turn, "act")
            assert caught.value.code == "STALE_TURN"
            assert caught.value.details["turn"] == "1"


async def test_a_run_that_has_ended_takes_no_more_turns(database_url: str) -> None:
    ends = [at_most("first", "state.b", 5), never("second")]
    async with table(database_url, document(loss_conditions=ends)) as game:
        (committed,) = only(await game.play(1), Committed)
        assert (committed.status.kind, committed.status.condition, committed.legal_actions) == (
            "lost",
            "first",
            (),
        )
        with pytest.raises(FailedPreconditionError) as caught:
            await game.play(2)
        assert caught.value.code == "RUN_ENDED"
        assert (await game.now()).legal_actions == ()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("request_id", {"request_id": "not-a-uuid"}),
        ("expected_turn", {"turn": 0}),
        ("input", {"input": "é" * 8_193}),
        ("actions", {"actions": ["act"] * 17}),
        ("actions[1].action_id", {"actions": ["act", "unknown"]}),
        ("actions[0].params[n]", {"actions": [PlayerAction("act", {"n": float("nan")})]}),
    ],
)
async def test_a_wrong_field_is_named_and_changes_nothing(
    database_url: str,
    field: str,
    change: dict[str, Any],
) -> None:
    async with table(database_url, document()) as game:
        before = await game.now()
        wanted: dict[str, Any] = {"turn": 1, "actions": ["act"], **change}
        turn, actions = wanted.pop("turn"), wanted.pop("actions")
        with pytest.raises(InvalidArgumentError) as caught:
            await game.play(turn, *actions, **wanted)
        assert [violation.field for violation in caught.value.violations] == [field]
        assert await game.now() == before


async def test_all_wrong_fields_are_named_at_once(database_url: str) -> None:
    async with table(database_url, document()) as game:
        game.session_id = ""
        with pytest.raises(InvalidArgumentError) as caught:
            await game.play(0, request_id="x")
        fields = [violation.field for violation in caught.value.violations]
        assert fields == ["session_id", "request_id", "expected_turn"]


async def test_an_unknown_session_or_point_of_view_is_not_found(database_url: str) -> None:
    async with table(database_url, document(entities=ENTITIES)) as game:
        with pytest.raises(NotFoundError, match="no entity 'r'"):
            await game.play(1, "act", pov="r")
        game.session_id = new_id()
        with pytest.raises(NotFoundError) as caught:
            await game.play(1, "act")
        assert caught.value.code == "UNKNOWN_SESSION"


async def test_the_same_request_replays_the_recorded_turn(database_url: str) -> None:
    gateway = FakeGateway(outcome("First.", visible_dialogue=[]), outcome("Second."))
    async with table(database_url, document(), gateway) as game:
        request = game.request(1, "act", input="words")
        events = await game.take(request)
        await game.play(2, "act")
        before = await game.now()
        assert await game.take(request) == events
        assert await game.now() == before
        assert len(gateway.requests) == 2


@pytest.mark.parametrize(
    "change",
    [{"input": "other"}, {"pov": "p"}, {"actions": ["act", "act"]}, {"turn": 2}],
)
async def test_the_same_request_id_for_another_turn_is_refused(
    database_url: str,
    change: dict[str, Any],
) -> None:
    async with table(database_url, document(entities=ENTITIES)) as game:
        request_id = new_id()
        await game.play(1, "act", request_id=request_id)
        wanted: dict[str, Any] = {"turn": 1, "actions": ["act"], **change}
        turn, actions = wanted.pop("turn"), wanted.pop("actions")
        with pytest.raises(AlreadyExistsError) as caught:
            await game.play(turn, *actions, request_id=request_id, **wanted)
        assert caught.value.code == "REQUEST_ID_REUSED"


async def test_duplicates_in_parallel_have_one_effect_and_equal_answers(database_url: str) -> None:
    gateway = FakeGateway(outcome())
    async with table(database_url, document(), gateway) as game:
        request = game.request(1, "act")
        answers = await asyncio.gather(*(game.take(request) for _ in range(8)))
        assert all(answer == answers[0] for answer in answers)
        assert kinds(answers[0]) == WHOLE_TURN
        assert json.loads((await game.now()).state)["a"] == 11
        assert len(gateway.requests) == 1


async def test_of_concurrent_turns_exactly_one_wins(database_url: str) -> None:
    async with table(database_url, document()) as game:
        taken = await asyncio.gather(*(game.play(1, "act") for _ in range(8)), return_exceptions=True)
        won = [answer for answer in taken if isinstance(answer, list)]
        lost = [error for error in taken if isinstance(error, ConflictError)]
        assert (len(won), len(lost)) == (1, 7)
        assert {error.code for error in lost} == {"STALE_TURN"}
        assert json.loads((await game.now()).state)["a"] == 11


async def test_sessions_do_not_wait_for_each_other(database_url: str) -> None:
    gateway = FakeGateway([SILENCE], outcome())
    async with table(database_url, document(), gateway) as game:
        other = await game.sessions.create(NewSession(new_id(), "scenario"))
        stuck = asyncio.ensure_future(game.play(1, "act"))
        await gateway.silent.wait()
        mine, game.session_id = game.session_id, other.session.session_id
        assert kinds(await game.play(1, "act")) == WHOLE_TURN
        game.session_id = mine
        stuck.cancel()
        await asyncio.wait([stuck])


async def _in_two_processes(
    database_url: str,
    game: Table,
    same_request: bool,
) -> list[list[TurnEventView] | BaseException]:
    """Take the next turn twice at a time, each over a database connection and locks of its own."""
    both_are_narrated = asyncio.Barrier(2)

    async def narrate(_request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        await both_are_narrated.wait()
        for event in saying(outcome()):
            yield event

    gateway = FakeGateway(narrate)
    other = await Database.open(database_url)
    try:
        requests = (
            [game.request(1, "act")] * 2 if same_request else [game.request(1, "act") for _ in range(2)]
        )
        sessions = [
            sessions_over(SessionStore(database), OneScenario(document()), gateway)
            for database in (game.database, other)
        ]

        async def take(number: int) -> list[TurnEventView]:
            return [event async for event in sessions[number].turn_runner.run(requests[number])]

        return list(await asyncio.gather(take(0), take(1), return_exceptions=True))
    finally:
        await other.close()


async def test_of_two_processes_the_database_lets_one_through(database_url: str) -> None:
    async with table(database_url, document()) as game:
        taken = await _in_two_processes(database_url, game, same_request=False)
        assert sorted(type(answer).__name__ for answer in taken) == ["ConflictError", "list"]
        assert json.loads((await game.now()).state)["a"] == 11


async def test_two_processes_give_the_same_answer_to_the_same_request(database_url: str) -> None:
    async with table(database_url, document()) as game:
        taken = await _in_two_processes(database_url, game, same_request=True)
        ends = []
        for answer in taken:
            assert isinstance(answer, list)
            begun = max(index for index, seen in enumerate(answer) if isinstance(seen.event, Accepted))
            ends.append(answer[begun:])
        assert ends[0] == ends[1]
        assert kinds(ends[0]) == WHOLE_TURN
        assert json.loads((await game.now()).state)["a"] == 11


async def test_a_turn_that_is_cancelled_leaves_nothing_and_ends_the_model_s_call(database_url: str) -> None:
    gateway = FakeGateway(['{"narrative": "Half', SILENCE], outcome("Whole."))
    async with table(database_url, document(), gateway) as game:
        before = await game.now()
        request = game.request(1, "act")
        turn = asyncio.ensure_future(game.take(request))
        await gateway.silent.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert gateway.cancelled == 1
        assert await game.now() == before
        again = await game.take(request)
        assert kinds(again) == WHOLE_TURN
        assert again[0].sequence == 1


async def test_an_attempt_that_is_begun_anew_says_so(database_url: str) -> None:
    async with table(database_url, document()) as game:
        request = game.request(1, "act")
        async with aclosing(game.sessions.turn_runner.run(request)) as events:
            first = await anext(events)
        second = (await game.take(request))[0]
        assert isinstance(first.event, Accepted)
        assert isinstance(second.event, Accepted)
        assert first.event.attempt_id != second.event.attempt_id
        assert first.sequence == second.sequence


async def test_a_reader_who_leaves_after_the_commit_finds_the_turn_done(database_url: str) -> None:
    async with table(database_url, document()) as game:
        request = game.request(1, "act")
        async with aclosing(game.sessions.turn_runner.run(request)) as events:
            async for seen in events:
                if isinstance(seen.event, Committed):
                    break
        assert (await game.now()).session.turn == 1
        assert kinds(await game.take(request)) == WHOLE_TURN


async def test_when_the_narrator_fails_the_turn_is_told_and_stored_all_the_same(database_url: str) -> None:
    async with table(database_url, document(), FakeGateway("nonsense")) as game:
        request = game.request(1, "act")
        events = await game.take(request)
        (committed,) = only(events, Committed)
        assert only(events, Degraded)[0].reason == "OUTCOME_INVALID"
        assert committed.resolution is Resolution.SERVER_RESOLVED
        assert await game.take(request) == events


async def test_prose_does_not_change_the_chain(database_url: str) -> None:
    chains = []
    for text in ("One telling.", "Another telling."):
        async with table(database_url, document(), FakeGateway(outcome(text))) as game:
            (committed,) = only(await game.play(1, "act"), Committed)
            chains.append(committed.chain_hash)
    assert chains[0] == chains[1]


async def test_the_narrator_is_reminded_of_what_the_point_of_view_has_heard(database_url: str) -> None:
    gateway = FakeGateway(*[outcome(text) for text in ("For all.", "For p.", "For q.", "Now.")])
    async with table(database_url, document(entities=ENTITIES), gateway) as game:
        for turn, pov in enumerate([None, "p", "q", "p"], 1):
            await game.play(turn, "act", pov=pov)
    histories = [
        [
            json.loads(message.text)["narrative"]
            for message in request.messages
            if message.role is ChatRole.ASSISTANT
        ]
        for request in gateway.requests
    ]
    assert histories == [[], ["For all."], ["For all."], ["For all.", "For p."]]


def wide(times: int) -> bytes:
    """A scenario whose action changes a text of 1,000 characters so many times."""
    effects = [{"op": "set", "path": "state.a", "value": mark * 1_000} for mark in "xy" * (times // 2)]
    return document(state={"a": "x" * 1_000}, actions=[action("act", effects)])


@pytest.mark.parametrize("limit", [64 * 1024, 200 * 1024])
async def test_a_turn_that_no_message_can_tell_is_not_taken(database_url: str, limit: int) -> None:
    gateway = FakeGateway(outcome())
    async with table(database_url, wide(40), gateway, message_bytes=limit) as game:
        before = await game.now()
        events = await game.play(1, "act", "act", "act")
        assert kinds(events) == ["Accepted", "RuleFailed"]
        assert isinstance(events[-1].event, RuleFailed)
        assert (events[-1].event.code, events[-1].event.turn_abandoned) == ("TURN_TOO_LARGE", True)
        assert await game.now() == before
        assert gateway.requests == []
        assert await game.store.list_turns(game.session_id, 0, 10) == []
        if limit > 100_000:
            assert kinds(await game.play(1, "act")) == WHOLE_TURN


async def test_prose_that_makes_a_turn_too_large_takes_it_back(database_url: str) -> None:
    silent, told = FakeGateway(outcome("a")), FakeGateway(outcome("\u4e00" * 1_500))
    for narrated, last in ((silent, "Committed"), (told, "RuleFailed")):
        async with table(database_url, wide(2), narrated, message_bytes=8_000) as game:
            events = await game.play(1, "act")
            assert kinds(events)[-1] == last
            assert (await game.now()).session.turn == (last == "Committed")
            assert [seen.sequence for seen in events] == list(range(1, len(events) + 1))
