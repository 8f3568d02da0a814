"""Sessions with several players, for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.session.seats.turn_order import SubmitActionsRequest
from peripety.session.types import NewSession, PlayerAction, Seat, TurnOrder
from peripety.session.types import SeatConfig as Players
from support.sessions import new_id, table
from support.specs import action, at_most, document, never

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.response import ModelGateway
    from support.sessions import Table


SCENARIO = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}],
    state={"a": 1, "b": 5, "private": {"p": {"x": 1}, "q": {"x": 1}}},
    actions=[
        action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
        action("double", [{"op": "mul", "path": "state.a", "value": 2}]),
        action("hide", [{"op": "inc", "path": "state.private.p.x", "value": 1}]),
        action(
            "never",
            [{"op": "inc", "path": "state.a", "value": 1}],
            preconditions={"<": [{"var": "state.a"}, 0]},
        ),
        action("end", [{"op": "set", "path": "state.b", "value": 0}]),
    ],
    loss_conditions=[at_most("lost", "state.b", 0), never("other")],
)
ROTATING = Players((Seat("one", "p"), Seat("two", "q")))
TOGETHER = replace(ROTATING, order=TurnOrder.SIMULTANEOUS)


@asynccontextmanager
async def at_a_table(
    database_url: str,
    gateway: ModelGateway | None = None,
    *,
    order: TurnOrder = TurnOrder.ROTATING,
    seconds: float | None = None,
    document: bytes = SCENARIO,
) -> AsyncIterator[Table]:
    """A session with the seats `one`, who plays `p`, and `two`, who plays `q`."""
    async with table(database_url, document, gateway) as game:
        players = replace(ROTATING, order=order, seconds=seconds)
        made = await game.sessions.create(NewSession(new_id(), "scenario", table=players))
        yield replace(game, session_id=made.session.session_id)
        await game.sessions.aclose()


def submission(game: Table, turn: int, seat_id: str, *actions: str, **more: Any) -> SubmitActionsRequest:
    """What a seat hands in."""
    calls = tuple(PlayerAction(name, {}) for name in actions)
    return SubmitActionsRequest(
        game.session_id,
        more.pop("request_id", new_id()),
        turn,
        seat_id,
        calls,
        **more,
    )
