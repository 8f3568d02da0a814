"""Comparison of two sessions as seen by one viewer: divergent turns and state differences."""

from __future__ import annotations

import asyncio
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.pages import Position, page_of, page_size, position_in
from peripety.requests import refuse
from peripety.sessions.branches.model import BranchTurn, Compared, Difference
from peripety.sessions.seen import SeenTurn, seen_events
from peripety.sim import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sessions.branches.model import Comparison
    from peripety.sessions.model import Session
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.seen import Room
    from peripety.sessions.store import SessionStore
    from peripety.sessions.visibility import SessionView

__all__ = ["compare", "differences"]

# Size of a difference in a message apart from its path and its values.
_DIFFERENCE_BYTES = 32


async def compare(store: SessionStore, rulesets: Rulesets, room: Room, request: Comparison) -> Compared:
    """Return a page of the comparison of two sessions.

    Raises:
        InvalidArgumentError: they play different versions, or the page size or token is invalid.
        NotFoundError: a session or entity does not exist.
    """
    size, token = page_size(request.page_size), position_in(request.page_token)
    here = await store.session(request.session_id)
    there = await store.session(request.other_session_id)
    if here.spec_hash != there.spec_hash:
        raise refuse(
            ".other_session_id", "plays another scenario version; compare sessions of the same version"
        )
    ruleset = await rulesets.of(here.spec_hash)
    view = ruleset.viewers.view(request.pov)
    common = await store.common_turn(here.session_id, there.session_id)
    differing: tuple[Difference, ...] = ()
    if token is None:
        differing = await asyncio.to_thread(_state_differences, ruleset, view, here, there)
    after = max(common, token.number if token else 0)
    turns = [
        BranchTurn(number, *pair)
        for number, pair in enumerate(
            zip_longest(
                await _turns(store, ruleset, view, here, after, size + 1),
                await _turns(store, ruleset, view, there, after, size + 1),
            ),
            after + 1,
        )
    ]
    fitting = await asyncio.to_thread(_fitting, room, differing, turns[:size])
    page = page_of(turns, fitting, lambda turn: Position(turn.turn))
    return Compared(common, differing, page.items, page.next_page_token)


async def _turns(
    store: SessionStore, ruleset: Ruleset, view: SessionView, session: Session, after: int, limit: int
) -> list[SeenTurn]:
    return [
        SeenTurn(turn, tuple(seen_events(session, ruleset.spec, view, turn)))
        for turn in await store.turns(session.session_id, after, limit)
    ]


def _fitting(room: Room, differing: tuple[Difference, ...], turns: list[BranchTurn]) -> int:
    """Return the number of turns that fit in one message after the differences."""
    taken = sum(_DIFFERENCE_BYTES + sum(map(len, _values(difference))) for difference in differing)
    groups = [[turn for turn in (pair.here, pair.there) if turn is not None] for pair in turns]
    return room.fitting(groups, taken)


def _values(difference: Difference) -> Iterator[bytes]:
    yield difference.path.encode()
    yield from (sim.canonical(value) for value in (difference.here, difference.there) if value is not ABSENT)


def _state_differences(
    ruleset: Ruleset, view: SessionView, here: Session, there: Session
) -> tuple[Difference, ...]:
    one, other = (
        view.state(ruleset.program.load_state(session.snapshot).tree()) for session in (here, there)
    )
    return tuple(differences(one, other))


def differences(here: Any, there: Any, path: tuple[str, ...] = ("state",)) -> Iterator[Difference]:
    """Yield the differences of two trees value by value, in path order; an array is one value."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in sorted(here.keys() | there.keys()):
            yield from differences(here.get(name, ABSENT), there.get(name, ABSENT), (*path, name))
    elif here is ABSENT or there is ABSENT or sim.canonical(here) != sim.canonical(there):
        yield Difference(sim.format_path(path), here, there)
