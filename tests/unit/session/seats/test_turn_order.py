from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError
from peripety.session.events import ActionResolved, Committed, NarrativeChunk, WorldResolved
from peripety.session.seats.turn_order import turn_lease
from peripety.session.store.seats import SeatStore
from peripety.session.types import NewSession, Seat, TurnOrder
from peripety.session.types import SeatConfig as Players
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import ROTATING, SCENARIO, at_a_table, new_id, only, outcome, table
from support.session.watch import commits, seen_of, watch

if TYPE_CHECKING:
    from peripety.session.types import Session


async def test_seats_take_turns_in_their_order(database_url: str) -> None:
    async with at_a_table(database_url) as game:
        assert (await game.now()).session.next_seat_id == "one"
        first = await game.play(1, "act", seat_id="one")
        second = await game.play(2, "act", seat_id="two")
        assert (await game.now()).session.next_seat_id == "one"
    assert [only(turn, Committed)[0].next_seat_id for turn in (first, second)] == ["two", "one"]
    assert [only(turn, ActionResolved)[0].entity_id for turn in (first, second)] == ["p", "q"]


async def test_a_seat_waits_for_its_turn(database_url: str) -> None:
    async with at_a_table(database_url) as game:
        with pytest.raises(FailedPreconditionError, match="turn of seat 'one'") as caught:
            await game.play(1, "act", seat_id="two")
        assert (caught.value.code, caught.value.details) == ("NOT_YOUR_TURN", {"next_seat_id": "one"})
        assert (await game.now()).session.turn == 0


async def test_each_seat_has_its_own_view_and_all_hear_the_same(database_url: str) -> None:
    async with at_a_table(database_url, FakeGateway(outcome("Told to all."))) as game:
        mine = await game.play(1, "hide", seat_id="one", input="Said aloud.")
        other = await game.sessions.resume(game.session_id, 1, pov="q")
    changed = [[change.path for change in only(seen, ActionResolved)[0].changes] for seen in (mine, other)]
    assert changed == [["state.private.p.x"], []]
    assert only(mine, NarrativeChunk) == only(other, NarrativeChunk) != []


async def test_a_turn_that_was_stored_is_told_although_the_database_goes_away_then(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with at_a_table(database_url, seconds=3600.0) as game:
        move = SeatStore.set_deadline

        async def failing(store: SeatStore, session: Session, due: int | None) -> None:
            if (await game.now()).session.turn:
                raise UnavailableError("the database is gone")
            await move(store, session, due)

        monkeypatch.setattr(SeatStore, "set_deadline", failing)
        assert only(await game.play(1, "act", seat_id="one"), Committed)


async def test_a_turn_of_a_seat_is_replayed_in_the_view_of_the_seat(database_url: str) -> None:
    async with at_a_table(database_url) as game:
        request = game.request(1, "hide", seat_id="one")
        assert await game.take(request) == await game.take(request)


@pytest.mark.parametrize(
    ("asked", "error", "code"),
    [
        ({}, InvalidArgumentError, "INVALID_ARGUMENT"),
        ({"seat_id": "three"}, NotFoundError, "UNKNOWN_SEAT"),
        ({"seat_id": "one", "pov": "q"}, InvalidArgumentError, "INVALID_ARGUMENT"),
    ],
)
async def test_a_turn_that_no_seat_can_take_is_refused(
    database_url: str,
    asked: dict[str, Any],
    error: type[Exception],
    code: str,
) -> None:
    async with at_a_table(database_url) as game:
        with pytest.raises(error) as caught:
            await game.play(1, "act", **asked)
        assert caught.value.code == code  # type: ignore[attr-defined]


async def test_one_player_has_no_seat(database_url: str) -> None:
    async with table(database_url, SCENARIO) as game:
        with pytest.raises(InvalidArgumentError, match="seat_id must be empty"):
            await game.play(1, "act", seat_id="one")


@pytest.mark.parametrize(
    ("players", "wrong"),
    [
        (Players(()), "seat_config.seats"),
        (Players(tuple(Seat(f"s{n}", f"e{n}") for n in range(17))), "seat_config.seats"),
        (Players((Seat("", "p"),)), "seat_config.seats[0].seat_id"),
        (Players((Seat("one", "p"), Seat("one", "q"))), "seat_config.seats[1].seat_id"),
        (Players((Seat("one", "p"), Seat("two", "p"))), "seat_config.seats[1].entity_id"),
        (Players((Seat("one", "r"),)), "seat_config.seats[0].entity_id"),
        (Players((Seat("one", "nobody"),)), "seat_config.seats[0].entity_id"),
        (Players((Seat("one", "p"),), TurnOrder.ROTATING, 0.5), "seat_config.seat_timeout"),
        (Players((Seat("one", "p"),), TurnOrder.ROTATING, 1e9), "seat_config.seat_timeout"),
    ],
)
async def test_a_table_that_cannot_be_is_refused(tmp_path: Any, players: Players, wrong: str) -> None:
    async with table(f"sqlite:///{tmp_path / 'test.db'}", SCENARIO) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.create(NewSession(new_id(), "scenario", table=players))
    assert [violation.field for violation in caught.value.violations] == [wrong]


async def test_a_seat_whose_time_is_up_passes(database_url: str) -> None:
    async with at_a_table(database_url, order=TurnOrder.ROTATING, seconds=1.0) as game:
        game.sessions.round_scheduler.start_polling()
        heard = seen_of(await watch(game.sessions, game.session_id, commits(1)))
        await game.sessions.aclose()
        now = (await game.now()).session
    assert not only(heard, ActionResolved)
    assert len(only(heard, WorldResolved)) == 1
    assert now.next_seat_id == "two"
    assert now.due is not None


async def test_a_seat_that_acts_in_time_is_waited_for_however_long_its_turn_is_told(
    database_url: str,
) -> None:
    gateway = FakeGateway([outcome("Told.")[:-6], "(silence)"])
    async with at_a_table(database_url, gateway, seconds=1.0) as game:
        before = (await game.now()).session
        turn = asyncio.create_task(game.play(1, "act", seat_id="one"))
        await gateway.silent.wait()
        assert before.due is not None
        assert not await game.store.seats.list_due(before.due + 1, 1)
        turn.cancel()
        await asyncio.wait([turn])
        assert [one.session_id for one in await game.store.seats.list_due(before.due + 1, 1)] == [
            game.session_id,
        ]


async def test_without_a_time_a_seat_is_waited_for_for_ever(database_url: str) -> None:
    async with at_a_table(database_url) as game:
        assert (await game.now()).session.due is None
        await game.play(1, seat_id="one")
        assert (await game.now()).session.due is None


async def test_players_are_kept_with_the_session(database_url: str) -> None:
    async with at_a_table(database_url) as game:
        assert (await game.now()).session.table == ROTATING


@pytest.mark.parametrize(("seconds", "lease"), [(5, 120), (90, 120), (600, 630)])
def test_a_lease_lasts_longer_than_a_narration_may_take(seconds: float, lease: int) -> None:
    assert turn_lease(seconds) == lease * 1_000_000
