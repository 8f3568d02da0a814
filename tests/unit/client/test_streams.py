"""Positions in streams that continue after a lost connection, requests and batches."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2 as pb
from peripety.client import AsyncClient, CallError, action
from peripety.client.channel import Settings, with_request_id
from peripety.client.errors import NotFound, ResourceExhausted, Unavailable
from peripety.client.streams import Cursor, batch_requests, turn_request, update_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def event(sequence: int, attempt: str = "", **kind: Any) -> pb.TakeTurnResponse:
    if attempt:
        kind["accepted"] = pb.TurnEvent.Accepted(attempt_id=attempt)
    return pb.TakeTurnResponse(event=pb.TurnEvent(turn=1, sequence=sequence, **kind))


def chunk(sequence: int) -> pb.TakeTurnResponse:
    return event(sequence, narrative_chunk=pb.TurnEvent.NarrativeChunk(text="x"))


def test_a_replayed_attempt_gives_each_event_once() -> None:
    cursor = Cursor(pb.TakeTurnRequest(session_id="s"))
    first = [event(7, "a"), chunk(8), chunk(9)]
    assert [cursor.advance(one) for one in first] == [True] * 3
    cursor.pause_after(Unavailable("lost"))
    assert [cursor.advance(one) for one in [*first, chunk(10)]] == [False, False, False, True]


def test_another_attempt_is_new_although_it_uses_the_same_numbers() -> None:
    cursor = Cursor(pb.TakeTurnRequest(session_id="s"))
    assert [cursor.advance(one) for one in [event(7, "a"), chunk(8), chunk(9)]] == [True] * 3
    cursor.pause_after(Unavailable("lost"))
    assert [cursor.advance(one) for one in [event(7, "b"), chunk(8), chunk(9), chunk(10)]] == [True] * 4


def test_the_request_keeps_its_id_and_the_one_of_the_caller_is_not_changed() -> None:
    given = pb.TakeTurnRequest(session_id="s")
    cursor = Cursor(given)
    before = cursor.request.request_id
    cursor.pause_after(Unavailable("lost"))
    assert uuid.UUID(cursor.request.request_id) == uuid.UUID(before)
    assert given == pb.TakeTurnRequest(session_id="s")


def test_work_continues_behind_the_last_event_and_starts_again_if_the_server_has_lost_it() -> None:
    cursor = Cursor(scenario_pb2.CompileScenarioRequest(spec=b"{}"))
    for sequence in (1, 2):
        assert cursor.advance(scenario_pb2.CompileScenarioResponse(sequence=sequence))
    cursor.pause_after(Unavailable("lost"))
    assert cursor.request.after_sequence == 2
    cursor.pause_after(NotFound("unknown", reason="WORK_NOT_FOUND"))
    assert cursor.request.after_sequence == 0
    assert cursor.advance(scenario_pb2.CompileScenarioResponse(sequence=1))
    with pytest.raises(NotFound):
        Cursor(scenario_pb2.CompileScenarioRequest()).pause_after(NotFound("x", reason="WORK_NOT_FOUND"))


def closed(reason: str) -> pb.WatchSessionResponse:
    return pb.WatchSessionResponse(closed=pb.WatchSessionResponse.Closed(reason=reason))


@pytest.mark.parametrize("reason", ["SERVER_SHUTTING_DOWN", "TOO_SLOW"])
async def test_a_watch_that_the_server_ends_early_continues(reason: str) -> None:
    first = pb.WatchSessionResponse(turn_event=pb.TurnEvent(turn=1, sequence=5))
    second = pb.WatchSessionResponse(turn_event=pb.TurnEvent(turn=1, sequence=6))
    streams = [[first, closed(reason)], [second, closed("RUN_ENDED")]]
    requests = []

    async def call(request: pb.WatchSessionRequest, **_: Any) -> AsyncIterator[pb.WatchSessionResponse]:
        requests.append(request.after_sequence)
        for response in streams[len(requests) - 1]:
            yield response

    async with AsyncClient("127.0.0.1:1") as client:
        request = pb.WatchSessionRequest(session_id="s")
        seen = [response async for response in client.follow(call, request)]
    assert seen == [first, second, closed("RUN_ENDED")]
    assert requests == [0, 5]


def test_a_watch_continues_with_the_attempt_of_its_last_event() -> None:
    cursor = Cursor(pb.WatchSessionRequest(session_id="s", after_sequence=3))
    heartbeat = pb.WatchSessionResponse(heartbeat=pb.WatchSessionResponse.Heartbeat(last_sequence=3))
    turn = pb.WatchSessionResponse(turn_event=event(4, "a").event)
    rewound = pb.WatchSessionResponse(rewound=pb.WatchSessionResponse.Rewound(sequence=5))
    assert [cursor.advance(one) for one in (heartbeat, turn, turn, rewound)] == [True, True, False, True]
    cursor.pause_after(Unavailable("lost"))
    assert (cursor.request.after_sequence, cursor.request.attempt_id) == (5, "a")


def test_the_client_waits_as_long_as_the_server_says_and_gives_up_without_progress() -> None:
    cursor = Cursor(pb.TakeTurnRequest())
    assert cursor.pause_after(Unavailable("busy", retry_after=5.0)) == 5.0
    assert cursor.pause_after(ResourceExhausted("busy", retry_after=1.0)) == 1.0
    for _ in range(5):
        assert 0 < cursor.pause_after(Unavailable("lost")) <= 2
    with pytest.raises(Unavailable):
        cursor.pause_after(Unavailable("lost"))
    cursor.advance(event(1, "a"))
    assert cursor.pause_after(Unavailable("lost")) <= 0.1, "an event is progress"


@pytest.mark.parametrize(
    "error",
    [
        CallError("x", status=grpc.StatusCode.ABORTED, reason="STALE_TURN"),
        ResourceExhausted("budget"),
        ResourceExhausted("quota", retry_after=3600.0),
    ],
)
def test_an_error_that_repeating_does_not_help_is_raised_at_once(error: CallError) -> None:
    with pytest.raises(CallError) as caught:
        Cursor(pb.TakeTurnRequest()).pause_after(error)
    assert caught.value is error


def test_a_request_without_an_id_gets_one_and_one_with_an_id_keeps_it() -> None:
    bare = pb.CreateSessionRequest(scenario_id="s")
    assert uuid.UUID(with_request_id(bare).request_id) != uuid.UUID(with_request_id(bare).request_id)
    assert not bare.request_id
    named = pb.CreateSessionRequest(request_id="mine")
    assert with_request_id(named) is named
    for without in (pb.GetSessionRequest(), pb.ResumeTurnRequest(turn=1), iter(())):
        assert with_request_id(without) is without


def test_a_turn_advances_its_session() -> None:
    session = pb.Session(session_id="s", turn=3, state=b"{}", pov_entity_id="a")
    request = turn_request(session, ["wait", action("rest", hours=2, loud=True, why="x")], "words", "seat")
    assert (request.expected_turn, request.pov_entity_id, request.input, request.seat_id) == (
        4,
        "a",
        "words",
        "seat",
    )
    assert [chosen.action_id for chosen in request.actions] == ["wait", "rest"]
    params = request.actions[1].params
    assert (params["hours"].number, params["loud"].flag, params["why"].text) == (2, True, "x")
    end = pb.TurnEvent.Committed(state_hash="h", chain_hash="c", next_seat_id="n")
    update_session(session, pb.TurnEvent(turn=4, sequence=9, committed=end))
    assert (session.turn, session.last_sequence, session.chain_hash, session.next_seat_id) == (4, 9, "c", "n")
    assert not session.state


def test_a_batch_packs_documents_and_stops_at_an_error_of_theirs() -> None:
    def documents() -> Iterator[tuple[str, bytes]]:
        for number in range(600):
            yield str(number), b"{}"
        raise OSError("gone")

    failures: list[Exception] = []
    sizes = [len(request.items) for request in batch_requests(documents(), None, failures)]
    assert sizes == [256, 256, 88]
    assert isinstance(failures[0], OSError)


@pytest.mark.parametrize("address", ["example.org:443", "10.0.0.1:50051"])
def test_a_token_is_never_sent_as_plaintext_to_another_machine(address: str) -> None:
    with pytest.raises(ValueError, match="set tls"):
        Settings(address, token="secret")  # noqa: S106 - not one
    Settings(address, tls=True, token="secret")  # noqa: S106
    for local in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/x"):
        Settings(local, token="secret")  # noqa: S106
