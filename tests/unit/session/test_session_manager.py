from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.storage.database import Database
from peripety.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from peripety.scenario.registry import ProgramCache
from peripety.session.events import Committed
from peripety.session.narration.narrator import Narrator
from peripety.session.session_manager import SessionManager
from peripety.session.store.session_store import SessionStore
from peripety.session.types import NewSession, Seat, SeatConfig, SessionListing
from support.engine.specs import action, document
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import ROOM, OneScenario, kinds, new_id, outcome, rulesets, sessions_over, table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenario.types import Scenario


ENTITIES = [{"id": "p", "playable": True}, {"id": "q", "playable": True}]
EFFECTS = [{"op": "inc", "path": path, "value": 1} for path in ("state.a", "state.private.p.x")]
SECRETIVE = document(
    entities=ENTITIES,
    state={"a": 1, "private": {"p": {"x": 1}}, "hidden": {"y": 2}},
    actions=[action("act", EFFECTS)],
)


class Emptied(OneScenario):
    """A source whose scenario can be deleted."""

    deleted = False

    async def get_scenario(self, scenario_id: str, spec_hash: str | None = None) -> Scenario:
        if self.deleted:
            raise NotFoundError("it is gone")
        return await super().get_scenario(scenario_id, spec_hash)


@asynccontextmanager
async def served(database_url: str, source: OneScenario | None = None) -> AsyncIterator[SessionManager]:
    database = await Database.open(database_url)
    try:
        scenarios = source or OneScenario(document())
        sessions = sessions_over(SessionStore(database), scenarios, FakeGateway(outcome()))
        try:
            yield sessions
        finally:
            await sessions.aclose()
    finally:
        await database.close()


def set_to(text: str) -> dict[str, str]:
    return {"op": "set", "path": "state.a", "value": text}


def new(**more: Any) -> NewSession:
    return NewSession(**{"request_id": new_id(), "scenario_id": "scenario", **more})


async def test_a_session_starts_at_turn_zero_of_its_scenario(database_url: str) -> None:
    async with served(database_url) as sessions:
        made = await sessions.create(new())
        assert await sessions.get(made.session.session_id, None) == made
    assert (made.session.turn, made.session.last_sequence, made.session.seed) == (0, 0, 7)
    assert made.session.status.kind == "ongoing"
    assert json.loads(made.state)["a"] == 10
    assert made.legal_actions == ("act",)


async def test_a_seed_of_its_own_takes_the_place_of_the_scenario_s(database_url: str) -> None:
    async with served(database_url) as sessions:
        one, other = await sessions.create(new()), await sessions.create(new(seed=2**53 - 1))
    assert other.session.seed == 2**53 - 1
    assert one.session.chain_hash != other.session.chain_hash
    assert one.session.state_hash == other.session.state_hash


async def test_the_same_request_makes_one_session(database_url: str) -> None:
    source = Emptied(document())
    async with served(database_url, source) as sessions:
        asked = new()
        made = await asyncio.gather(*(sessions.create(asked) for _ in range(5)))
        assert len({seen.session.session_id for seen in made}) == 1
        source.deleted = True
        assert await sessions.create(asked) == made[0]
        assert len((await sessions.list_sessions(SessionListing(), 0, "")).items) == 1


async def test_the_same_request_id_for_another_session_is_refused(database_url: str) -> None:
    async with served(database_url) as sessions:
        asked = new()
        await sessions.create(asked)
        with pytest.raises(AlreadyExistsError) as caught:
            await sessions.create(new(request_id=asked.request_id, seed=1))
    assert caught.value.code == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("request_id", {"request_id": ""}),
        ("scenario_id", {"scenario_id": ""}),
        ("seed", {"seed": 2**53}),
        ("seed", {"seed": -1}),
    ],
)
async def test_a_wrong_field_of_a_new_session_is_named(
    database_url: str,
    field: str,
    change: dict[str, Any],
) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(InvalidArgumentError) as caught:
            await sessions.create(new(**change))
        assert (await sessions.list_sessions(SessionListing(), 0, "")).items == ()
    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize("change", [{"scenario_id": "other"}, {"spec_hash": "0" * 64}, {"pov": "p"}])
async def test_a_session_of_what_does_not_exist_is_not_made(
    database_url: str,
    change: dict[str, Any],
) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(NotFoundError):
            await sessions.create(new(**change))
        assert (await sessions.list_sessions(SessionListing(), 0, "")).items == ()


async def test_a_session_goes_on_when_its_scenario_is_deleted(database_url: str) -> None:
    source = Emptied(document())
    async with served(database_url, source) as sessions:
        made = await sessions.create(new())
    source.deleted = True
    async with served(database_url, source) as restarted:
        assert await restarted.get(made.session.session_id, None) == made


async def test_each_point_of_view_sees_its_own_state(database_url: str) -> None:
    async with served(database_url, OneScenario(SECRETIVE)) as sessions:
        made = await sessions.create(new(pov="p"))
        assert json.loads(made.state) == {"a": 1, "private": {"p": {"x": 1}}}
        for viewer in (None, "q"):
            assert json.loads((await sessions.get(made.session.session_id, viewer)).state) == {"a": 1}


async def test_sessions_are_listed_newest_first_page_by_page(database_url: str) -> None:
    async with served(database_url) as sessions:
        made = [(await sessions.create(new())).session.session_id for _ in range(5)]
        first = await sessions.list_sessions(SessionListing("scenario"), 2, "")
        second = await sessions.list_sessions(SessionListing("scenario"), 2, first.next_page_token)
        third = await sessions.list_sessions(SessionListing("scenario"), 2, second.next_page_token)
        listed = [session.session_id for page in (first, second, third) for session in page.items]
        assert sorted(listed) == sorted(made)
        assert [page.items[0].created for page in (first, second, third)] == sorted(
            (page.items[0].created for page in (first, second, third)),
            reverse=True,
        )
        assert third.next_page_token == ""
        assert (await sessions.list_sessions(SessionListing("another"), 0, "")).items == ()


async def test_sessions_are_filtered_by_status_and_listed_by_their_latest_turn(database_url: str) -> None:
    losses = [{"id": name, "when": {"<=": [{"var": "state.a"}, 1]}} for name in ("one", "other")]
    once = document(
        actions=[action("act", [{"op": "inc", "path": "state.a", "value": -1}]), action("wait", [])],
        entities=ENTITIES,
        state={"a": 2},
        loss_conditions=losses,
    )
    seats = SeatConfig((Seat("first", "p"),))
    async with table(database_url, once) as game:
        sessions, newest = game.sessions, NewSession(new_id(), "scenario", table=seats)
        other = (await sessions.create(newest)).session.session_id
        latest = SessionListing(by_update_time=True)
        both = [session.session_id for session in (await sessions.list_sessions(latest, 0, "")).items]
        assert both == [other, game.session_id]
        await game.play(1, "act")
        first = await sessions.list_sessions(latest, 1, "")
        second = await sessions.list_sessions(latest, 1, first.next_page_token)
        assert [page.items[0].session_id for page in (first, second)] == [game.session_id, other]
        assert second.items[0].table == seats
        for status, expected in (("lost", [game.session_id]), ("ongoing", [other]), ("won", [])):
            listing = SessionListing("scenario", frozenset({status}))
            found = (await sessions.list_sessions(listing, 0, "")).items
            assert [session.session_id for session in found] == expected
        either = SessionListing(statuses=frozenset({"lost", "ongoing"}))
        assert len((await sessions.list_sessions(either, 0, "")).items) == 2


@pytest.mark.parametrize(
    "token",
    ["x", "e30=", "é", "f" * 16, "0" * 16, "8" + "0" * 15 + "-" * 36, "[" * 100_000, "\ud800"],
)
async def test_a_page_token_of_another_list_is_refused(database_url: str, token: str) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(InvalidArgumentError) as caught:
            await sessions.list_sessions(SessionListing(), 0, token)
    assert caught.value.violations[0].field == "page_token"


async def test_a_negative_page_size_is_refused(database_url: str) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(InvalidArgumentError) as caught:
            await sessions.list_sessions(SessionListing(), -1, "")
    assert caught.value.violations[0].field == "page_size"


async def test_a_deleted_session_is_gone_with_its_turns(database_url: str) -> None:
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        request_id = new_id()
        await game.sessions.delete(game.session_id, request_id)
        await game.sessions.delete(game.session_id, request_id)
        assert await game.store.find_turn(game.session_id, 1) is None
        for call in (game.now(), game.sessions.delete(game.session_id, new_id()), game.play(2, "act")):
            with pytest.raises(NotFoundError):
                await call


async def test_a_deletion_names_its_wrong_fields(database_url: str) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(InvalidArgumentError) as caught:
            await sessions.delete("", "")
    assert [violation.field for violation in caught.value.violations] == ["session_id", "request_id"]


async def test_a_session_must_be_named(database_url: str) -> None:
    async with served(database_url) as sessions:
        for call in (sessions.get("", None), sessions.resume("", 1), sessions.list_turns("", None, 0, "")):
            with pytest.raises(InvalidArgumentError) as caught:
                await call
            assert caught.value.violations[0].field == "session_id"


async def test_a_turn_is_heard_again_from_where_the_reader_left(database_url: str) -> None:
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        request = game.request(2, "act")
        events = await game.take(request)
        begun = events[0].event
        assert await game.sessions.resume(game.session_id, 2) == tuple(events)
        assert await game.sessions.resume(game.session_id, request.request_id) == tuple(events)
        left = events[2].sequence
        assert await game.sessions.resume(game.session_id, 2, after=left) == tuple(events[3:])
        assert await game.sessions.resume(game.session_id, 2, after=events[-1].sequence) == ()
        same = await game.sessions.resume(game.session_id, 2, after=left, attempt_id=begun.attempt_id)  # type: ignore[union-attr]  # it is Accepted
        assert same == tuple(events[3:])


async def test_who_followed_another_attempt_hears_the_turn_from_its_start(database_url: str) -> None:
    async with table(database_url, document()) as game:
        events = await game.play(1, "act")
        assert await game.sessions.resume(game.session_id, 1, after=3, attempt_id=new_id()) == tuple(events)


@pytest.mark.parametrize("which", [2, "3fe56d00-50d0-4964-826a-f9b979568b7d"], ids=["a_turn", "a_request"])
async def test_a_turn_that_is_not_committed_cannot_be_heard(database_url: str, which: int | str) -> None:
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        with pytest.raises(NotFoundError) as caught:
            await game.sessions.resume(game.session_id, which)
    assert caught.value.code == "UNKNOWN_TURN"


async def test_a_turn_heard_again_is_cut_to_who_hears_it(database_url: str) -> None:
    gateway = FakeGateway(outcome("Told in private."))
    async with table(database_url, SECRETIVE, gateway) as game:
        mine = await game.play(1, "act", pov="p", input="said to p alone")
        theirs = await game.sessions.resume(game.session_id, 1, pov="q")
        assert [seen.sequence for seen in theirs] == [seen.sequence for seen in mine]
        assert kinds(theirs) == ["Accepted", "ActionResolved", "WorldResolved", "NoneType", "Committed"]
        assert "to p alone" in str(mine)
        assert "to p alone" not in str([seen.event for seen in theirs])
        assert "private" not in str([seen.event for seen in theirs])


async def test_turns_are_listed_oldest_first_page_by_page(database_url: str) -> None:
    async with table(database_url, document()) as game:
        played = [await game.play(turn, "act") for turn in range(1, 6)]
        first = await game.sessions.list_turns(game.session_id, None, 3, "")
        second = await game.sessions.list_turns(game.session_id, None, 3, first.next_page_token)
        assert [list(turn.events) for turn in (*first.items, *second.items)] == played
        assert isinstance(second.items[-1].events[-1].event, Committed)
        assert second.next_page_token == ""


async def test_numbers_that_no_turn_has_find_none(database_url: str) -> None:
    async with table(database_url, document()) as game:
        assert await game.store.list_turns(game.session_id, 2**63 - 1, 10) == []
        assert await game.store.find_turn(game.session_id, 2**40) is None


async def test_names_with_any_character_find_no_session(database_url: str) -> None:
    async with served(database_url) as sessions:
        with pytest.raises(NotFoundError):
            await sessions.get("a\x00b", None)


@pytest.mark.parametrize("token", ["9" * 40, "8" + "0" * 15, "0" * 52, "[" * 100_000, "\ud800"])
async def test_a_page_token_that_no_list_of_turns_gave_is_refused(database_url: str, token: str) -> None:
    async with table(database_url, document()) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.list_turns(game.session_id, None, 0, token)
    assert caught.value.violations[0].field == "page_token"


async def test_a_page_of_turns_ends_where_a_message_does(database_url: str) -> None:
    wide = document(
        state={"a": "x" * 9_000},
        actions=[action("act", [set_to("y" * 9_000), set_to("x" * 9_000)])],
    )
    async with table(database_url, wide, message_bytes=100_000) as game:
        for turn in range(1, 6):
            await game.play(turn, "act")
        first = await game.sessions.list_turns(game.session_id, None, 5, "")
        second = await game.sessions.list_turns(game.session_id, None, 5, first.next_page_token)
    assert [seen.turn.turn for seen in first.items] == [1, 2]
    assert [seen.turn.turn for seen in second.items] == [3, 4]


async def test_more_scenarios_than_are_kept_compiled_can_be_played(database_url: str) -> None:
    async with table(database_url, document()) as game:
        one, narrator = OneScenario(document(seed=8)), Narrator(FakeGateway(outcome()))
        other = SessionManager(game.store, one, rulesets(game.store, ProgramCache(most=1)), narrator, ROOM)
        made = await other.create(new())
        assert (await other.get(game.session_id, None)).session.seed == 7
        assert await other.get(made.session.session_id, None) == made
