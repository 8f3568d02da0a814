from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.call_context import now_micros
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
)
from peripety.session.branch_types import RewindRequest
from peripety.session.events import Accepted, ActionResolved, Committed, RuleFailed
from peripety.session.seats.turn_order import TURN_LEASE_MICROS
from peripety.session.store.seats import SeatStore
from peripety.session.store.session_store import SessionStore
from peripety.session.types import PlayerAction, TurnOrder
from peripety.session.watch.topic import SeatActed
from support.engine.specs import action, document
from support.gateway.fake_gateway import SILENCE, FakeGateway
from support.session.sessions import (
    SCENARIO,
    OneScenario,
    at_a_table,
    new_id,
    only,
    outcome,
    sessions_over,
    submission,
    table,
)
from support.session.watch import commits, noticing, seen_of, watch

if TYPE_CHECKING:
    from peripety.session.seats.turn_order import SimultaneousTurn
    from peripety.session.visibility import TurnEventView
    from peripety.session.watch.topic import WatchEvent
    from support.session.sessions import Table


# One seat can act, both of them cannot: the state would grow too large.
GROWING = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}],
    state={"list": [[0] * 200] * 48},
    actions=[action("act", [{"op": "push", "path": "state.list", "value": [0] * 250}])],
)


def together(database_url: str, gateway: Any = None, **more: Any) -> Any:
    return at_a_table(database_url, gateway, order=TurnOrder.SIMULTANEOUS, **more)


async def heard(game: Table, turn: int) -> list[TurnEventView]:
    """The events of a turn, once it is committed."""
    told = await watch(game.sessions, game.session_id, commits(turn))
    return [seen for seen in seen_of(told) if seen.turn == turn]


async def test_a_turn_is_played_when_all_seats_have_acted_in_their_order(database_url: str) -> None:
    async with together(database_url) as game:
        assert await game.sessions.round_scheduler.submit(
            submission(game, 1, "two", "double", input="Second.")
        ) == ("one",)
        assert (await game.now()).session.turn == 0
        assert (
            await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act", input="First."))
            == ()
        )
        events = await heard(game, 1)
        now = await game.now()
    assert [(act.action_id, act.entity_id) for act in only(events, ActionResolved)] == [
        ("act", "p"),
        ("double", "q"),
    ]
    assert only(events, Accepted)[0].input == "p: First.\nq: Second."
    assert only(events, Committed)[0].next_seat_id is None
    assert now.state == b'{"a":4,"b":5}'


async def test_what_one_seat_cannot_do_does_not_hold_up_the_others(database_url: str) -> None:
    async with together(database_url) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "never"))
        await game.sessions.round_scheduler.submit(submission(game, 1, "two"))
        events = await heard(game, 1)
    assert [act.accepted for act in only(events, ActionResolved)] == [False]


async def test_followers_hear_who_has_acted(database_url: str) -> None:
    async with together(database_url) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "two"))
        there = asyncio.Event()
        watching = asyncio.create_task(watch(game.sessions, game.session_id, noticing(there, commits(1))))
        await there.wait()
        await game.sessions.round_scheduler.submit(submission(game, 1, "one"))
        told = await watching
    assert [event for event in told if isinstance(event, SeatActed)] == [
        SeatActed(1, "two", ("one",)),
        SeatActed(1, "one", ()),
    ]


async def test_the_same_request_again_changes_nothing(database_url: str) -> None:
    async with together(database_url) as game:
        first = submission(game, 1, "one", "act")
        assert (
            await game.sessions.round_scheduler.submit(first)
            == await game.sessions.round_scheduler.submit(first)
            == ("two",)
        )
        await game.sessions.round_scheduler.submit(submission(game, 1, "two"))
        await heard(game, 1)
        assert await game.sessions.round_scheduler.submit(first) == ()
        with pytest.raises(AlreadyExistsError):
            await game.sessions.round_scheduler.submit(replace(first, input="Something else."))
        assert (await game.now()).session.turn == 1


async def test_a_seat_acts_once_a_turn(database_url: str) -> None:
    async with together(database_url) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act"))
        with pytest.raises(FailedPreconditionError) as caught:
            await game.sessions.round_scheduler.submit(submission(game, 1, "one", "double"))
    assert caught.value.code == "SEAT_HAS_ACTED"


@pytest.mark.parametrize(
    ("turn", "seat", "actions", "error"),
    [
        (2, "one", [], ConflictError),
        (1, "three", [], NotFoundError),
        (1, "", [], InvalidArgumentError),
        (1, "one", ["unknown"], InvalidArgumentError),
        (1, "one", ["act"] * 17, InvalidArgumentError),
    ],
)
async def test_what_cannot_be_handed_in_is_refused(
    tmp_path: Any,
    turn: int,
    seat: str,
    actions: list[str],
    error: type[PeripetyError],
) -> None:
    async with together(f"sqlite:///{tmp_path / 'test.db'}") as game:
        with pytest.raises(error):
            await game.sessions.round_scheduler.submit(submission(game, turn, seat, *actions))
        assert not (await game.store.seats.load_turn((await game.now()).session)).acted_seats


async def test_parameters_that_are_no_values_are_refused_when_they_are_handed_in(tmp_path: Any) -> None:
    async with together(f"sqlite:///{tmp_path / 'test.db'}") as game:
        odd = replace(submission(game, 1, "one"), actions=(PlayerAction("act", {"x": "\ud800"}),))
        with pytest.raises(PeripetyError):
            await game.sessions.round_scheduler.submit(odd)


async def test_each_order_has_its_own_call(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    async with at_a_table(url) as game:
        with pytest.raises(FailedPreconditionError) as caught:
            await game.sessions.round_scheduler.submit(submission(game, 1, "one"))
        assert caught.value.code == "SEATS_TAKE_TURNS"
    async with together(url) as game:
        with pytest.raises(FailedPreconditionError) as caught:
            await game.play(1, "act", seat_id="one")
        assert caught.value.code == "SIMULTANEOUS_SEATS"
    async with table(url, SCENARIO) as game:
        with pytest.raises(FailedPreconditionError) as caught:
            await game.sessions.round_scheduler.submit(submission(game, 1, "one"))
        assert caught.value.code == "SEATS_TAKE_TURNS"


async def test_a_run_that_has_ended_takes_nothing_more(database_url: str) -> None:
    async with together(database_url) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "end"))
        await game.sessions.round_scheduler.submit(submission(game, 1, "two"))
        await heard(game, 1)
        with pytest.raises(FailedPreconditionError) as caught:
            await game.sessions.round_scheduler.submit(submission(game, 2, "one"))
    assert caught.value.code == "RUN_ENDED"


async def test_a_turn_goes_on_without_the_seats_whose_time_is_up(database_url: str) -> None:
    async with together(database_url, seconds=3600.0) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "two", "act"))
        await game.store.seats.set_deadline((await game.now()).session, now_micros())
        game.sessions.round_scheduler.start_polling()
        events = await heard(game, 1)
    assert [act.entity_id for act in only(events, ActionResolved)] == ["q"]


async def test_a_seat_whose_time_is_up_can_hand_in_nothing(database_url: str) -> None:
    async with together(database_url, seconds=3600.0) as game:
        session = (await game.now()).session
        assert await game.store.seats.claim(session, now_micros() + TURN_LEASE_MICROS)
        with pytest.raises(FailedPreconditionError) as caught:
            await game.sessions.round_scheduler.submit(submission(game, 1, "one"))
    assert caught.value.code == "SEAT_TIMEOUT"


async def test_of_two_processes_one_takes_a_turn_over(database_url: str) -> None:
    async with together(database_url, seconds=3600.0) as game:
        session = (await game.now()).session
        later = now_micros() + TURN_LEASE_MICROS
        took = await asyncio.gather(*(game.store.seats.claim(session, later) for _ in range(4)))
    assert sorted(took) == [False, False, False, True]


async def test_a_turn_that_all_have_acted_in_is_played_by_another_process_if_this_one_goes_down(
    database_url: str,
) -> None:
    async with together(database_url, FakeGateway([SILENCE]), seconds=3600.0) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act"))
        await game.sessions.round_scheduler.submit(submission(game, 1, "two", "double"))
        await game.sessions.aclose()
        other = sessions_over(SessionStore(game.database), OneScenario(SCENARIO), FakeGateway(outcome()))
        other.round_scheduler.start_polling()
        told = await watch(other, game.session_id, commits(1))
        await other.aclose()
    assert [act.action_id for act in only(seen_of(told), ActionResolved)] == ["act", "double"]


async def test_a_turn_is_played_although_the_last_seat_leaves_while_its_actions_are_stored(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with together(database_url) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act"))
        seats, stored = SeatStore.submit, asyncio.Event()

        async def submit(store: SeatStore, *arguments: Any) -> tuple[SimultaneousTurn, bool]:
            answer = await seats(store, *arguments)
            stored.set()
            await asyncio.sleep(0)
            return answer

        monkeypatch.setattr(SeatStore, "submit", submit)
        leaving = asyncio.create_task(game.sessions.round_scheduler.submit(submission(game, 1, "two")))
        await stored.wait()
        leaving.cancel()
        await asyncio.wait([leaving])
        assert leaving.cancelled()
        async with asyncio.timeout(30):
            events = await heard(game, 1)
    assert [act.action_id for act in only(events, ActionResolved)] == ["act"]


async def test_a_turn_that_was_taken_back_before_all_had_acted_in_it_was_known_is_not_played_without_them(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with together(database_url) as game:
        for seat in ("one", "two"):
            await game.sessions.round_scheduler.submit(submission(game, 1, seat, "act"))
        await heard(game, 1)
        await game.sessions.round_scheduler.submit(submission(game, 2, "one", "act"))
        seats, handed_in = SeatStore.submit, submission(game, 2, "two", "act")

        async def submit(store: SeatStore, *arguments: Any) -> tuple[SimultaneousTurn, bool]:
            answer = await seats(store, *arguments)
            await game.sessions.rewind(RewindRequest(new_id(), game.session_id, 0, 1))
            return answer

        monkeypatch.setattr(SeatStore, "submit", submit)
        await game.sessions.round_scheduler.submit(handed_in)
        while game.sessions.round_scheduler._tasks:
            await asyncio.wait(game.sessions.round_scheduler._tasks)
        assert (await game.now()).session.turn == 0


@pytest.mark.slow_after(1, reason="waits for a seat")
async def test_seats_act_again_in_a_turn_that_was_abandoned(database_url: str) -> None:
    async with together(database_url, document=GROWING) as game:
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act"))
        there = asyncio.Event()
        watching = asyncio.create_task(watch(game.sessions, game.session_id, noticing(there, is_abandoned)))
        await there.wait()  # a turn that is not stored is not announced later
        await game.sessions.round_scheduler.submit(submission(game, 1, "two", "act"))
        told = await watching
        session = (await game.now()).session
        while (await game.store.seats.load_turn(session)).acted_seats:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0.01)
        await game.sessions.round_scheduler.submit(submission(game, 1, "one", "act"))
        await game.sessions.round_scheduler.submit(submission(game, 1, "two"))
        events = await heard(game, 1)
    assert only(seen_of(told), RuleFailed)[0].code == "STATE_LIMIT"
    assert [act.accepted for act in only(events, ActionResolved)] == [True]


def is_abandoned(event: WatchEvent) -> bool:
    return bool(only(seen_of([event]), RuleFailed))
