from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from peripety.session import memory
from peripety.session.branch_types import RewindRequest
from peripety.session.branches import state_at
from peripety.session.store.session_store import SessionStore
from peripety.session.store.tables import turns
from peripety.session.store.turn_commit import SNAPSHOT_TURNS
from peripety.session.types import CommittedTurn, ForkOrigin, NarratorMemory, RecordedRewind
from support.session.sessions import (
    ENDING,
    FATEFUL,
    forked,
    new_id,
    rewound,
    rulesets,
    table,
    turn_for,
    turns_of,
    verified,
)

if TYPE_CHECKING:
    from peripety.session.types import Session
    from support.session.sessions import Table


async def play(game: Table, turns: int, *actions: str) -> Session:
    """The session after some turns more."""
    for _ in range(turns):
        await game.take(turn_for(await game.store.get_session(game.session_id), *actions))
    return await game.store.get_session(game.session_id)


async def test_a_rewound_session_is_what_it_was_and_the_rewind_has_a_sequence(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        then = await game.now() if await play(game, 2, "act") else None
        before = await play(game, 3, "act")
        now = await rewound(game.sessions, game.session_id, 2)
        assert then is not None
        assert (now.state, now.legal_actions) == (then.state, then.legal_actions)
        assert (now.session.turn, now.session.chain_hash) == (2, then.session.chain_hash)
        assert now.session.last_sequence == before.last_sequence + 1
        assert now.session.usage == before.usage
        assert await game.now() == now
        with pytest.raises(NotFoundError):
            await game.sessions.resume(game.session_id, 3)


async def test_the_same_turns_can_be_taken_again_and_come_to_the_same(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        before = await play(game, 5, "act")
        back = (await rewound(game.sessions, game.session_id, 1)).session
        assert (await play(game, 4, "act")).chain_hash == before.chain_hash
        again = await verified(game.store, game.session_id)
    assert again[1].first_sequence == back.last_sequence + 1


async def test_a_rewind_to_the_start_leaves_no_turn(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        start = await game.now()
        await play(game, 2, "act")
        now = await rewound(game.sessions, game.session_id, 0)
        assert (now.state, now.session.chain_hash) == (start.state, start.session.chain_hash)
        assert await turns_of(game.store, game.session_id) == []


async def test_a_run_that_ended_goes_on_from_before(database_url: str) -> None:
    async with table(database_url, ENDING) as game:
        await play(game, 1)
        assert (await play(game, 1, "end")).status.kind == "lost"
        assert (await rewound(game.sessions, game.session_id, 1)).session.status.kind == "ongoing"
        assert (await play(game, 1)).turn == 2


async def test_a_turn_that_was_taken_back_is_never_played_again(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 1, "act")
        request = game.request(2, "act")
        await game.take(request)
        await rewound(game.sessions, game.session_id, 1)
        with pytest.raises(FailedPreconditionError) as taking:
            await game.take(request)
        with pytest.raises(FailedPreconditionError) as resuming:
            await game.sessions.resume(game.session_id, request.request_id)
        assert (await game.now()).session.turn == 1
        await game.take(replace(request, request_id=new_id()))
        await rewound(game.sessions, game.session_id, 0)
        with pytest.raises(FailedPreconditionError):
            await game.take(request)
    assert taking.value.code == resuming.value.code == "TURN_REWOUND"


async def test_forks_stay_as_they_were(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 5, "act")
        forks = [(await forked(game.sessions, game.session_id, turn)).session for turn in (2, 4)]
        kept = [await verified(game.store, fork.session_id) for fork in forks]
        for turn in (3, 1, 0):
            await rewound(game.sessions, game.session_id, turn)
            assert [await verified(game.store, fork.session_id) for fork in forks] == kept
            await play(game, 1, "other")
            await verified(game.store, game.session_id)
        assert [await game.store.get_session(fork.session_id) for fork in forks] == forks


async def test_a_fork_can_go_back_past_where_it_began(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 4, "act")
        kept = await verified(game.store, game.session_id)
        fork = (await forked(game.sessions, game.session_id, 3, seed=99)).session
        parent, game.session_id = game.session_id, fork.session_id
        await play(game, 2, "act")
        at_fork = (await rewound(game.sessions, fork.session_id, 3)).session
        assert (at_fork.seed, at_fork.reseeded, at_fork.parent) == (99, True, ForkOrigin(parent, 3))
        before = (await rewound(game.sessions, fork.session_id, 1)).session
        assert (before.seed, before.reseeded, before.parent) == (7, False, ForkOrigin(parent, 1))
        await play(game, 3, "act")
        assert [turn.record for turn in await verified(game.store, fork.session_id)] == [
            turn.record for turn in kept
        ]
        assert await verified(game.store, parent) == kept


async def test_the_same_request_takes_turns_back_once(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 4, "act")
        request = RewindRequest(new_id(), game.session_id, 2, 4)
        seen = await asyncio.gather(*(game.sessions.rewind(request) for _ in range(5)))
        assert {one.session.last_sequence for one in seen} == {seen[0].session.last_sequence}
        on = await play(game, 2, "act")
        assert (await game.sessions.rewind(request)).session == on
        with pytest.raises(AlreadyExistsError) as caught:
            await game.sessions.rewind(replace(request, turn=1))
    assert caught.value.code == "REQUEST_ID_REUSED"


async def test_a_rewind_that_its_own_request_overtakes_tells_what_is_now(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 4, "act")
        request = RewindRequest(new_id(), game.session_id, 2, 4)
        look = game.store.is_rewound_by_request

        async def overtaken(*asked: Any) -> bool:
            monkeypatch.undo()
            await game.sessions.rewind(request)
            return await look(*asked)

        monkeypatch.setattr(game.store, "is_rewound_by_request", overtaken)
        late = await game.sessions.rewind(request)
        assert late.session == await game.store.get_session(game.session_id)
    assert late.session.turn == 2


async def test_a_rewind_that_was_meant_for_another_state_is_refused(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        before = await play(game, 2, "act")
        with pytest.raises(ConflictError) as caught:
            await game.sessions.rewind(RewindRequest(new_id(), game.session_id, 1, 3))
        assert await game.store.get_session(game.session_id) == before
    assert caught.value.code == "STALE_TURN"


async def test_of_two_rewinds_one_wins(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 4, "act")
        requests = [RewindRequest(new_id(), game.session_id, turn, 4) for turn in (1, 2, 3)]
        ends = await asyncio.gather(*map(game.sessions.rewind, requests), return_exceptions=True)
        lost = [end for end in ends if isinstance(end, ConflictError)]
        assert [error.code for error in lost] == ["STALE_TURN"] * 2
        await verified(game.store, game.session_id)


class Interrupted(SessionStore):
    """A store in which something happens before a turn is stored."""

    meanwhile: Any = None

    async def commit_turn(self, session: Session, turn: CommittedTurn) -> None:
        if self.meanwhile is not None:
            await self.meanwhile()
        await super().commit_turn(session, turn)


async def test_a_turn_under_way_loses_against_a_rewind(database_url: str) -> None:
    async with table(database_url, FATEFUL, store=Interrupted) as game:
        await play(game, 2, "act")
        assert isinstance(game.store, Interrupted)

        async def meanwhile() -> None:
            await rewound(game.sessions, game.session_id, 1)

        game.store.meanwhile = meanwhile
        with pytest.raises(ConflictError) as caught:
            await play(game, 1, "act")
        game.store.meanwhile = None
        assert caught.value.code == "STALE_TURN"
        assert (await play(game, 1, "other")).turn == 2
        await verified(game.store, game.session_id)


async def test_a_turn_under_way_loses_even_when_the_session_is_at_its_turn_again(database_url: str) -> None:
    async with table(database_url, FATEFUL, store=Interrupted) as game:
        await play(game, 2, "act")
        assert isinstance(game.store, Interrupted)

        async def meanwhile() -> None:
            game.store.meanwhile = None  # type: ignore[attr-defined]
            await rewound(game.sessions, game.session_id, 1)
            other = await game.store.get_session(game.session_id)
            await game.store.commit_turn(*await turn_elsewhere(game, other))

        game.store.meanwhile = meanwhile
        with pytest.raises(ConflictError) as caught:
            await play(game, 1, "act")
        assert caught.value.code == "STALE_TURN"
        assert (await game.now()).session.turn == 2


async def turn_elsewhere(game: Table, session: Session) -> tuple[Session, CommittedTurn]:
    """Return a turn that another process has played: like the rewound one, with later sequences."""
    fork = (await forked(game.sessions, session.session_id)).session
    on = replace(game, session_id=fork.session_id)
    played = await play(on, 1, "other")
    (turn,) = (await turns_of(game.store, fork.session_id))[1:]
    first = session.last_sequence + 1
    turn = replace(turn, request_id=new_id(), first_sequence=first)
    played = replace(
        played,
        session_id=session.session_id,
        line_id=session.line_id,
        last_sequence=turn.last_sequence,
        parent=None,
    )
    return played, turn


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("request_id", {"request_id": ""}),
        ("session_id", {"session_id": ""}),
        ("turn", {"turn": -1}),
        ("turn", {"turn": 2}),
        ("expected_turn", {"expected_turn": 0}),
    ],
)
async def test_a_wrong_field_of_a_rewind_is_named(
    database_url: str,
    field: str,
    change: dict[str, Any],
) -> None:
    async with table(database_url, FATEFUL) as game:
        before = await play(game, 2, "act")
        whole = {"request_id": new_id(), "session_id": game.session_id, "turn": 1, "expected_turn": 2}
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.rewind(RewindRequest(**{**whole, **change}))
        assert await game.store.get_session(game.session_id) == before
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_who_watches_hears_turns_and_rewinds_in_order(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 3, "act")
        first = (await rewound(game.sessions, game.session_id, 2)).session.last_sequence
        await play(game, 1, "other")
        second = (await rewound(game.sessions, game.session_id, 1)).session.last_sequence
        end = (await play(game, 1, "other")).last_sequence
        whole = await game.store.list_history(game.session_id, 0, 10)
        assert [told(one) for one in whole] == [1, ("back", 1), 2]
        assert told_sequences(whole) == [1, second, second + 1]
        one_turn = whole[0]
        assert isinstance(one_turn, CommittedTurn)
        # A position inside a turn returns that whole turn; a rewind superseded by a further one is omitted.
        assert await game.store.list_history(game.session_id, one_turn.last_sequence - 1, 10) == whole
        assert await game.store.list_history(game.session_id, one_turn.last_sequence, 10) == whole[1:]
        assert await game.store.list_history(game.session_id, first, 1) == whole[1:2]
        assert await game.store.list_history(game.session_id, second, 10) == whole[2:]
        assert await game.store.list_history(game.session_id, end, 10) == []
        assert await game.store.list_history("nobody", 0, 10) == []


def told(one: CommittedTurn | RecordedRewind) -> Any:
    return ("back", one.turn) if isinstance(one, RecordedRewind) else one.turn


def told_sequences(found: list[CommittedTurn | RecordedRewind]) -> list[int]:
    return [one.sequence if isinstance(one, RecordedRewind) else one.first_sequence for one in found]


class Remembering(SessionStore):
    """A store of sessions in which every turn is remembered, and the oldest memory is forgotten."""

    async def commit_turn(self, session: Session, turn: CommittedTurn) -> None:
        before = (await self.get_session(session.session_id)).memories
        new = NarratorMemory(turn.turn, "scope", "p", f"turn {turn.turn}", "private")
        now = (*before[-3:], new) if turn.turn % 3 else before
        await super().commit_turn(
            replace(session, memories=now),
            replace(turn, memories=memory.diff_memories(before, now)),
        )


async def test_memories_of_then_come_back(database_url: str) -> None:
    async with table(database_url, FATEFUL, store=Remembering) as game:
        turns = SNAPSHOT_TURNS + 3
        known = [(), *[(await play(game, 1, "act")).memories for _ in range(turns)]]
        for turn, memories in enumerate(known):
            then = await state_at(game.store, rulesets(game.store), game.session_id, turn)
            assert then.memories == memories
        back = await rewound(game.sessions, game.session_id, SNAPSHOT_TURNS - 2)
        assert back.session.memories == known[SNAPSHOT_TURNS - 2]


async def test_an_earlier_state_starts_from_the_nearest_snapshot(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2 * SNAPSHOT_TURNS + 2, "act")
        name = game.session_id
        starts = {
            turn: past.start
            for turn in (1, SNAPSHOT_TURNS - 1, SNAPSHOT_TURNS, SNAPSHOT_TURNS + 1, 2 * SNAPSHOT_TURNS + 1)
            if (past := await game.store.load_replay_start(name, turn)) is not None
        }
        assert list(starts.values()) == [0, 0, SNAPSHOT_TURNS, SNAPSHOT_TURNS, 2 * SNAPSHOT_TURNS]
        assert await game.store.load_replay_start(name, 2 * SNAPSHOT_TURNS + 3) is None


async def test_a_record_that_was_tampered_with_is_found(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 3, "act")
        (second,) = (await turns_of(game.store, game.session_id))[1:2]
        async with game.database.write() as connection:
            forged = second.record.replace(b'"act"', b'"other"')
            await connection.execute(update(turns).where(turns.c.turn == 2).values(record=forged))
        with pytest.raises(InternalError, match="turn 2"):
            await rewound(game.sessions, game.session_id, 2)
