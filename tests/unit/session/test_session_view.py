from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.session.branch_types import RewindRequest
from peripety.session.session_view import RecentTurnCache
from peripety.session.store.session_store import SessionStore
from support.engine.specs import document
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import OneScenario, new_id, outcome, sessions_over, table

if TYPE_CHECKING:
    import pytest

    from peripety.session.types import CommittedTurn


async def test_turns_that_were_just_played_are_not_read_again(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[str] = []
    read = SessionStore.list_turns

    async def turns(store: SessionStore, session_id: str, after: int, limit: int) -> list[CommittedTurn]:
        reads.append(session_id)
        return await read(store, session_id, after, limit)

    monkeypatch.setattr(SessionStore, "list_turns", turns)
    async with table(database_url, document()) as game:
        for turn in range(1, 12):
            await game.play(turn, "act")
        assert reads == []
        monkeypatch.undo()
        session = (await game.now()).session
        kept = RecentTurnCache(game.store)
        assert [turn.turn for turn in await kept.get(session)] == list(range(4, 12))


async def test_turns_of_another_process_and_rewinds_are_noticed(database_url: str) -> None:
    gateway = FakeGateway(*[outcome(f"Told {number}.") for number in range(9)])
    async with table(database_url, document(), gateway) as game:
        await game.play(1, "act")
        await game.play(2, "act")
        other = replace(game, sessions=sessions_over(game.store, OneScenario(document()), gateway))
        await other.play(3, "act")
        await game.play(4, "act")
        await other.sessions.rewind(RewindRequest(new_id(), game.session_id, turn=3, expected_turn=4))
        await game.play(4, "act")
    told = ["".join(message.text for message in request.messages) for request in gateway.requests]
    assert "Told 2." in told[3]
    assert "Told 3." not in told[4]


async def test_only_so_much_is_kept(database_url: str) -> None:
    async with table(database_url, document()) as game:
        await game.play(1, "act")
        session = (await game.now()).session
        (turn,) = await game.store.list_turns(game.session_id, 0, 8)
        recent = RecentTurnCache(game.store)
        mark = replace(turn, request_id="kept")
        recent.put(session, [mark])
        assert await recent.get(session) == (mark,)
        recent.put(session, [replace(mark, record=b"x" * 70_000)])
        assert await recent.get(session) == (turn,)
        recent.put(session, [mark])
        for number in range(128):
            recent.put(replace(session, session_id=f"s{number}"), [])
        assert await recent.get(session) == (turn,)
