"""A game without services, for what is shown and typed at the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.api.common.v1 import common_pb2, engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli.game import Game
from peripety.cli.players import PointOfView
from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Mapping

ONGOING = engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_ONGOING)
YOU = PointOfView("me", "You", "")


class StoredGame(Game):
    """A game whose session changes only by the calls of a test.

    Attributes:
        calls: what was called, in order.
        won: the share of won futures by the id of the first action; other actions are not legal.
    """

    def __init__(
        self,
        spec: Mapping[str, Any] | None = None,
        legal: tuple[engine_pb2.LegalAction, ...] = (),
        *,
        turn: int = 0,
        state: Mapping[str, Any] | None = None,
        status: engine_pb2.RunStatus = ONGOING,
    ) -> None:
        self.spec = dict(spec or {})
        self.viewpoint = YOU
        self.session = session_pb2.Session(
            session_id="11111111-aaaa",
            scenario_id="scn_1",
            turn=turn,
            state=json.dumps(state or {}).encode(),
            status=status,
            legal_actions=legal,
        )
        self.calls: list[tuple[Any, ...]] = []
        self.won: dict[str, float] = {}

    async def refresh(self) -> None:
        """Read nothing."""

    async def rewind(self, turn: int) -> None:
        """Set the turn."""
        self.calls.append(("rewind", turn))
        self.session.turn = turn

    async def fork(self) -> None:
        """Change the id."""
        self.calls.append(("fork",))
        self.session.session_id = "22222222-bbbb"

    async def ask(self, question: str) -> session_pb2.AskSessionResponse:
        """Return a fixed answer."""
        self.calls.append(("ask", question))
        return session_pb2.AskSessionResponse(answer="Alpha: 3.", found=True, turns=[2])

    async def forecast(
        self,
        runs: int,
        first: engine_pb2.ActionCall | None = None,
    ) -> session_pb2.ForecastOutcomesResponse:
        """Return the share that the test has set."""
        if first is not None and first.action_id not in self.won:
            raise FailedPreconditionError("not legal")
        value = 0.25 if first is None else self.won[first.action_id]
        end = session_pb2.OutcomeProbability(
            condition="won", kind=engine_pb2.RUN_STATUS_KIND_WON, rate=common_pb2.Rate(value=value)
        )
        return session_pb2.ForecastOutcomesResponse(runs=runs, outcomes=[end])


def action(name: str, *params: engine_pb2.Param, about: str = "") -> engine_pb2.LegalAction:
    """Return a legal action with the id `name`."""
    return engine_pb2.LegalAction(action_id=name, name=name.capitalize(), description=about, params=params)


def number(least: float, most: float, name: str = "amount") -> engine_pb2.Param:
    """Return a whole parameter."""
    return engine_pb2.Param(name=name, type=engine_pb2.PARAM_TYPE_INTEGER, minimum=least, maximum=most)
