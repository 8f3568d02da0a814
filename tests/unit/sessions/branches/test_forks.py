from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from peripety.gateway.types.response import UsageTotal
from peripety.session.branch_types import ForkRequest
from peripety.session.events import Committed
from peripety.session.types import ForkOrigin, NewSession
from support.session.sessions import (
    ENDING,
    FATEFUL,
    forked,
    is_gone,
    new_id,
    only,
    standing_rows,
    table,
    turn_for,
    turns_of,
    verified,
)

if TYPE_CHECKING:
    from peripety.session.types import Session
    from support.session.sessions import Table


async def play_on(game: Table, session_id: str, *actions: str) -> str:
    """Take a turn in a session; the chain hash after it."""
    session = await game.store.get_session(session_id)
    events = await game.take(turn_for(session, *actions))
    (end,) = only(events, Committed)
    chain_hash: str = end.chain_hash
    return chain_hash


async def play(game: Table, turns: int) -> Session:
    """The session after some turns more."""
    for _ in range(turns):
        await play_on(game, game.session_id, "act")
    return await game.store.get_session(game.session_id)


async def test_a_fork_has_the_first_turns_and_leaves_the_other_session_as_it_was(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        parent = await play(game, 3)
        fork = (await forked(game.sessions, game.session_id, 2)).session
        assert (fork.turn, fork.parent) == (2, ForkOrigin(game.session_id, 2))
        assert fork.session_id != game.session_id
        await play_on(game, fork.session_id, "other")
        assert await game.store.get_session(game.session_id) == parent
        mine, its = await verified(game.store, fork.session_id), await verified(game.store, game.session_id)
    assert mine[:2] == its[:2]
    assert mine[2].record != its[2].record


async def test_a_fork_starts_from_the_present_unless_a_turn_is_named(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        here, there = await game.now(), await forked(game.sessions, game.session_id)
    assert (there.state, there.session.chain_hash, there.session.last_sequence) == (
        here.state,
        here.session.chain_hash,
        here.session.last_sequence,
    )


async def test_a_fork_copies_no_turns(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 20)
        before = await standing_rows(game.database)
        fork = await forked(game.sessions, game.session_id, 19)
        await forked(game.sessions, fork.session.session_id, 18)
        after = await standing_rows(game.database)
    assert after == before | {"session_lines": before["session_lines"] + 2}


async def test_a_fork_keeps_the_fate(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        fork = (await forked(game.sessions, game.session_id)).session
        for _ in range(5):
            chains = [await play_on(game, name, "act") for name in (game.session_id, fork.session_id)]
            assert chains[0] == chains[1]


async def test_another_seed_is_another_fate_and_the_record_tells_it_once(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        fork = (await forked(game.sessions, game.session_id, seed=99)).session
        assert (fork.seed, fork.first_seed) == (99, 7)
        for _ in range(5):
            for name in (game.session_id, fork.session_id):
                await play_on(game, name, "act")
        records = [turn.record for turn in await verified(game.store, fork.session_id)]
        others = [turn.record for turn in await verified(game.store, game.session_id)]
    assert [b'"seed":99' in record for record in records] == [False, False, True, False, False, False, False]
    assert [b'"draws"' in record for record in records] == [True] * 7
    assert records[2:] != others[2:]


async def test_the_same_seed_is_no_other_seed(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 1)
        fork = (await forked(game.sessions, game.session_id, seed=7)).session
        assert not fork.reseeded
        assert await play_on(game, fork.session_id, "act") == await play_on(game, game.session_id, "act")


async def test_a_fork_of_the_start_with_another_seed_is_a_session_of_that_seed(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        fork = (await forked(game.sessions, game.session_id, 0, seed=99)).session
        fresh = (await game.sessions.create(NewSession(new_id(), "scenario", seed=99))).session
        assert (fork.first_seed, fork.reseeded, fork.last_sequence) == (99, False, 0)
        assert (fork.snapshot, fork.chain_hash) == (fresh.snapshot, fresh.chain_hash)
        for _ in range(3):
            chains = [await play_on(game, name, "act") for name in (fork.session_id, fresh.session_id)]
            assert chains[0] == chains[1]
        await verified(game.store, fork.session_id)


async def test_a_seed_that_was_chosen_stays_for_forks_of_that_turn(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        fork = (await forked(game.sessions, game.session_id, seed=99)).session
        before = (await forked(game.sessions, fork.session_id)).session
        await play_on(game, fork.session_id, "act")
        after = (await forked(game.sessions, fork.session_id, 2)).session
        earlier = (await forked(game.sessions, fork.session_id, 1)).session
        assert (before.seed, after.seed, earlier.seed) == (99, 99, 7)
        ends = {await play_on(game, name, "act") for name in (before.session_id, after.session_id)}
    assert len(ends) == 1


async def test_forks_of_forks_outlive_all_that_they_come_from(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 4)
        names = [game.session_id]
        for turn in (3, 4, 2, 3):
            fork = (await forked(game.sessions, names[-1], turn)).session
            await play_on(game, fork.session_id, "other")
            names.append(fork.session_id)
        kept = {name: await verified(game.store, name) for name in names}
        for name in names[:-1]:
            await game.sessions.delete(name, new_id())
            assert await is_gone(game.sessions, name)
        assert await verified(game.store, names[-1]) == kept[names[-1]]
        rows = await standing_rows(game.database)
        assert rows["session_turns"] == len(kept[names[-1]])
        await play_on(game, names[-1], "act")
        await game.sessions.delete(names[-1], new_id())
        assert set((await standing_rows(game.database)).values()) == {0}


async def test_a_fork_counts_its_own_usage(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        parent = await play(game, 1)
        fork = (await forked(game.sessions, game.session_id)).session
    assert parent.usage != UsageTotal()
    assert fork.usage == UsageTotal()


async def test_a_fork_of_a_run_that_ended_goes_on_from_before(database_url: str) -> None:
    async with table(database_url, ENDING) as game:
        await game.play(1)
        await game.play(2, "end")
        assert (await game.now()).session.status.kind == "lost"
        fork = (await forked(game.sessions, game.session_id, 1)).session
        assert fork.status.kind == "ongoing"
        await play_on(game, fork.session_id)
        await verified(game.store, fork.session_id)


async def test_a_turn_s_request_belongs_to_the_session_that_it_was_sent_to(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 1)
        (turn,) = await turns_of(game.store, game.session_id)
        fork = (await forked(game.sessions, game.session_id)).session
        heard = await game.sessions.resume(fork.session_id, turn.request_id)
        assert [seen.sequence for seen in heard] == list(range(1, turn.last_sequence + 1))
        game.session_id = fork.session_id
        with pytest.raises(AlreadyExistsError) as caught:
            await game.play(2, request_id=turn.request_id)
    assert caught.value.code == "REQUEST_ID_REUSED"


async def test_the_same_request_makes_one_fork(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 2)
        request = ForkRequest(new_id(), game.session_id, 1)
        made = await asyncio.gather(*(game.sessions.fork(request) for _ in range(5)))
        assert len({seen.session.session_id for seen in made}) == 1
        await game.sessions.delete(game.session_id, new_id())
        assert (await game.sessions.fork(request)).session == made[0].session
        with pytest.raises(AlreadyExistsError) as caught:
            await game.sessions.fork(ForkRequest(request.request_id, game.session_id, 2))
    assert caught.value.code == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("request_id", {"request_id": "no"}),
        ("session_id", {"session_id": ""}),
        ("turn", {"turn": -1}),
        ("seed", {"seed": 2**53}),
    ],
)
async def test_a_wrong_field_of_a_fork_is_named(
    database_url: str,
    field: str,
    change: dict[str, Any],
) -> None:
    async with table(database_url, FATEFUL) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.fork(
                ForkRequest(**{"request_id": new_id(), "session_id": game.session_id, **change}),
            )
    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("UNKNOWN_SESSION", {"session_id": "other"}),
        ("UNKNOWN_TURN", {"turn": 2}),
        ("UNKNOWN_ENTITY", {"pov": "nobody"}),
    ],
)
async def test_a_fork_of_what_does_not_exist_is_not_made(
    database_url: str,
    code: str,
    change: dict[str, Any],
) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, 1)
        with pytest.raises(NotFoundError) as caught:
            await game.sessions.fork(
                ForkRequest(**{"request_id": new_id(), "session_id": game.session_id, **change}),
            )
        assert len((await game.sessions.list_sessions(None, 0, "")).items) == 1
    assert caught.value.code == code
