from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import ABSENT
from peripety.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from peripety.gateway.types.response import UsageTotal
from peripety.session.branch_types import CompareRequest, ForkRequest, StateDifference
from peripety.session.branches import diff_trees
from peripety.session.events import Committed
from peripety.session.types import ForkOrigin, NewSession, SessionListing
from support.engine.specs import action, document
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import (
    DEALT_ENDING,
    ENDING,
    FATEFUL,
    OneScenario,
    forked,
    is_gone,
    new_id,
    only,
    outcome,
    rewound,
    sessions_over,
    standing_rows,
    table,
    turn_for,
    turns_of,
    verified,
)

if TYPE_CHECKING:
    from peripety.session.branch_types import BranchComparison
    from peripety.session.types import Session
    from support.session.sessions import Table


SECRETIVE = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}],
    state={"a": 1, "private": {"p": {"x": 1}}, "hidden": {"y": 1}},
    actions=[
        action(
            "act",
            [
                {"op": "inc", "path": path, "value": 1}
                for path in ("state.a", "state.private.p.x", "state.hidden.y")
            ],
        ),
    ],
)


async def play(game: Table, session_id: str, *actions: str, turns: int = 1) -> None:
    """Take some turns in a session."""
    for _ in range(turns):
        await game.take(turn_for(await game.store.get_session(session_id), *actions))


@pytest.mark.parametrize("seed", range(3))
async def test_a_fork_has_the_epilogue_of_its_own_ending(database_url: str, seed: int) -> None:
    async with table(database_url, DEALT_ENDING) as game:
        made = await game.sessions.create(NewSession(new_id(), "scenario", seed=seed))
        await play(game, made.session.session_id, turns=2)
        ended = (await game.store.get_session(made.session.session_id)).status
        assert (ended.condition, (ended.epilogue or "")[:5]) == ("late", "text ")
        at_the_end = (await forked(game.sessions, made.session.session_id, 2)).session
        before = (await forked(game.sessions, made.session.session_id, 1)).session
        assert (at_the_end.status, before.status.epilogue) == (ended, None)
        await play(game, before.session_id)
        assert (await game.store.get_session(before.session_id)).status == ended


async def compared(game: Table, other: str, **more: object) -> BranchComparison:
    return await game.sessions.branches.compare(
        CompareRequest(**{"session_id": game.session_id, "other_session_id": other, **more}),  # type: ignore[arg-type]
    )


async def test_a_fork_has_in_common_what_came_before_it(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, game.session_id, "act", turns=4)
        fork = (await forked(game.sessions, game.session_id, 2)).session.session_id
        await play(game, fork, "other")
        found = await compared(game, fork)
        assert found.common_turn == 2
        assert [(pair.turn, pair.here is None, pair.there is None) for pair in found.turns] == [
            (3, False, False),
            (4, False, True),
        ]
        values = {one.path: (one.here, one.there) for one in found.differences}
        assert values["state.a"] == (5, 3)
        assert values["state.b"] == (1, 2)
        deeper = (await forked(game.sessions, fork, 3)).session.session_id
        assert (await compared(game, deeper)).common_turn == 2


async def test_what_happened_alike_is_in_common_wherever_it_was_played(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        other = (await game.sessions.create(NewSession(new_id(), "scenario"))).session.session_id
        for name in (game.session_id, other):
            await play(game, name, "act", turns=11)
        await play(game, game.session_id, "act", turns=2)
        await play(game, other, "other", turns=2)
        assert (await compared(game, other)).common_turn == 11
        await rewound(game.sessions, game.session_id, 3)
        assert (await compared(game, other)).common_turn == 3
        assert (await compared(game, game.session_id)).turns == ()
        fork = (await forked(game.sessions, game.session_id, 2)).session.session_id
        await play(game, fork, "act")
        same = await compared(game, fork)
        assert (same.common_turn, same.differences) == (3, ())


async def test_sessions_of_other_seeds_have_nothing_in_common(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        other = (await game.sessions.create(NewSession(new_id(), "scenario", seed=9))).session.session_id
        assert (await compared(game, other)).differences == ()
        for name in (game.session_id, other):
            await play(game, name, turns=2)
        found = await compared(game, other)
    assert (found.common_turn, [pair.turn for pair in found.turns]) == (0, [1, 2])


async def test_pages_go_on_where_the_page_before_ended(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play(game, game.session_id, "act", turns=5)
        fork = (await forked(game.sessions, game.session_id, 1)).session.session_id
        await play(game, fork, "other", turns=2)
        seen, token, first = [], "", True
        while first or token:
            page = await compared(game, fork, page_size=2, page_token=token)
            assert page.common_turn == 1
            assert bool(page.differences) == first
            seen += [pair.turn for pair in page.turns]
            token, first = page.next_page_token, False
        assert seen == [2, 3, 4, 5]


async def test_a_page_ends_where_a_message_does(database_url: str) -> None:
    texts = ["y" * 9_000, "x" * 9_000]
    effects = [{"op": "set", "path": "state.a", "value": text} for text in texts]
    wide = document(state={"a": texts[1]}, actions=[action("act", effects)])
    async with table(database_url, wide, message_bytes=100_000) as game:
        other = (await game.sessions.create(NewSession(new_id(), "scenario", seed=9))).session.session_id
        for name in (game.session_id, other):
            await play(game, name, "act", turns=3)
        first = await compared(game, other)
        second = await compared(game, other, page_token=first.next_page_token)
    assert [pair.turn for page in (first, second) for pair in page.turns] == [1, 2]


@pytest.mark.parametrize(
    ("pov", "paths"),
    [(None, ["state.a"]), ("p", ["state.a", "state.private.p.x"]), ("q", ["state.a"])],
)
async def test_both_are_seen_as_one_viewer_sees_them(
    database_url: str,
    pov: str | None,
    paths: list[str],
) -> None:
    async with table(database_url, SECRETIVE) as game:
        fork = (await forked(game.sessions, game.session_id)).session.session_id
        await play(game, fork, "act")
        found = await compared(game, fork, pov=pov)
        assert [one.path for one in found.differences] == paths
        (pair,) = found.turns
        assert pair.there is not None
        end = pair.there.events[-1].event
        assert [change.path for change in end.changes] == paths  # type: ignore[union-attr]


async def test_sessions_of_different_versions_are_not_compared(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        elsewhere = sessions_over(game.store, OneScenario(SECRETIVE), FakeGateway(outcome()))
        other = (await elsewhere.create(NewSession(new_id(), "scenario"))).session.session_id
        with pytest.raises(InvalidArgumentError) as caught:
            await compared(game, other)
    assert [violation.field for violation in caught.value.violations] == ["other_session_id"]


async def test_what_cannot_be_compared_is_named(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        here_twice = (game.session_id, game.session_id)
        here = CompareRequest(*here_twice)
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.branches.compare(replace(here, session_id="", other_session_id=""))
        for unknown in (replace(here, other_session_id="other"), replace(here, pov="unknown")):
            with pytest.raises(NotFoundError):
                await game.sessions.branches.compare(unknown)
        for wrong in (replace(here, page_size=-1), CompareRequest(*here_twice, None, 0, "no token")):
            with pytest.raises(InvalidArgumentError):
                await game.sessions.branches.compare(wrong)
    assert [violation.field for violation in caught.value.violations] == ["session_id", "other_session_id"]


def test_differences_name_the_deepest_value_that_differs() -> None:
    here = {"a": 1, "b": {"x": [1, 2], "odd key": 1}, "gone": None, "same": {"n": 1.0}}
    there = {"a": 2, "b": {"x": [1, 3], "odd key": {"y": 1}}, "new": {"z": 1}, "same": {"n": 1}}
    assert list(diff_trees(here, there)) == [
        StateDifference("state.a", 1, 2),
        StateDifference('state.b["odd key"]', 1, {"y": 1}),
        StateDifference("state.b.x", [1, 2], [1, 3]),
        StateDifference("state.gone", None, ABSENT),
        StateDifference("state.new", ABSENT, {"z": 1}),
    ]


async def play_on(game: Table, session_id: str, *actions: str) -> str:
    """Take a turn in a session; the chain hash after it."""
    session = await game.store.get_session(session_id)
    events = await game.take(turn_for(session, *actions))
    (end,) = only(events, Committed)
    chain_hash: str = end.chain_hash
    return chain_hash


async def play_turns(game: Table, turns: int) -> Session:
    """The session after some turns more."""
    for _ in range(turns):
        await play_on(game, game.session_id, "act")
    return await game.store.get_session(game.session_id)


async def test_a_fork_has_the_first_turns_and_leaves_the_other_session_as_it_was(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        parent = await play_turns(game, 3)
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
        await play_turns(game, 2)
        here, there = await game.now(), await forked(game.sessions, game.session_id)
    assert (there.state, there.session.chain_hash, there.session.last_sequence) == (
        here.state,
        here.session.chain_hash,
        here.session.last_sequence,
    )


async def test_a_fork_copies_no_turns(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play_turns(game, 20)
        before = await standing_rows(game.database)
        fork = await forked(game.sessions, game.session_id, 19)
        await forked(game.sessions, fork.session.session_id, 18)
        after = await standing_rows(game.database)
    assert after == before | {"session_lines": before["session_lines"] + 2}


async def test_a_fork_keeps_the_fate(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play_turns(game, 2)
        fork = (await forked(game.sessions, game.session_id)).session
        for _ in range(5):
            chains = [await play_on(game, name, "act") for name in (game.session_id, fork.session_id)]
            assert chains[0] == chains[1]


async def test_another_seed_is_another_fate_and_the_record_tells_it_once(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play_turns(game, 2)
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
        await play_turns(game, 1)
        fork = (await forked(game.sessions, game.session_id, seed=7)).session
        assert not fork.reseeded
        assert await play_on(game, fork.session_id, "act") == await play_on(game, game.session_id, "act")


async def test_a_fork_of_the_start_with_another_seed_is_a_session_of_that_seed(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        await play_turns(game, 2)
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
        await play_turns(game, 2)
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
        await play_turns(game, 4)
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
        parent = await play_turns(game, 1)
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
        await play_turns(game, 1)
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
        await play_turns(game, 2)
        request = ForkRequest(new_id(), game.session_id, 1)
        made = await asyncio.gather(*(game.sessions.branches.fork(request) for _ in range(5)))
        assert len({seen.session.session_id for seen in made}) == 1
        await game.sessions.delete(game.session_id, new_id())
        assert (await game.sessions.branches.fork(request)).session == made[0].session
        with pytest.raises(AlreadyExistsError) as caught:
            await game.sessions.branches.fork(ForkRequest(request.request_id, game.session_id, 2))
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
            await game.sessions.branches.fork(
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
        await play_turns(game, 1)
        with pytest.raises(NotFoundError) as caught:
            await game.sessions.branches.fork(
                ForkRequest(**{"request_id": new_id(), "session_id": game.session_id, **change}),
            )
        assert len((await game.sessions.list_sessions(SessionListing(), 0, "")).items) == 1
    assert caught.value.code == code
