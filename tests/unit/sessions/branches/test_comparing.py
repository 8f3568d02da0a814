from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety.engine import ABSENT
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.session.branch_types import CompareRequest, StateDifference
from peripety.session.branches import diff_trees
from peripety.session.types import NewSession
from support.engine.specs import action, document
from support.session.sessions import (
    FATEFUL,
    OneScenario,
    ScriptedGateway,
    forked,
    new_id,
    rewound,
    sessions_over,
    table,
    turn_for,
)

if TYPE_CHECKING:
    from peripety.session.branch_types import BranchComparison
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


async def compared(game: Table, other: str, **more: object) -> BranchComparison:
    return await game.sessions.compare(
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
        elsewhere = sessions_over(game.store, OneScenario(SECRETIVE), ScriptedGateway())
        other = (await elsewhere.create(NewSession(new_id(), "scenario"))).session.session_id
        with pytest.raises(InvalidArgumentError) as caught:
            await compared(game, other)
    assert [violation.field for violation in caught.value.violations] == ["other_session_id"]


async def test_what_cannot_be_compared_is_named(database_url: str) -> None:
    async with table(database_url, FATEFUL) as game:
        here_twice = (game.session_id, game.session_id)
        here = CompareRequest(*here_twice)
        with pytest.raises(InvalidArgumentError) as caught:
            await game.sessions.compare(replace(here, session_id="", other_session_id=""))
        for unknown in (replace(here, other_session_id="other"), replace(here, pov="nobody")):
            with pytest.raises(NotFoundError):
                await game.sessions.compare(unknown)
        for wrong in (replace(here, page_size=-1), CompareRequest(*here_twice, None, 0, "no token")):
            with pytest.raises(InvalidArgumentError):
                await game.sessions.compare(wrong)
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
