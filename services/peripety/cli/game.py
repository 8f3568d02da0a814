"""One session that is played: its turns, its branches and its forecasts, over the session service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.cli.players import select_point_of_view
from peripety.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import grpc.aio

    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.cli.players import PointOfView, TurnInput


LATEST = "latest"
"""In place of an id: the session that was played last."""

ENDED = frozenset(
    {
        engine_pb2.RUN_STATUS_KIND_LOST,
        engine_pb2.RUN_STATUS_KIND_SURVIVED,
        engine_pb2.RUN_STATUS_KIND_WON,
    }
)
"""Kinds of the status of a run that has ended."""

_ID_LENGTH = 36
_SHORT_ID_LENGTH = 8
_MAX_LISTED = 1_000


def short_id(session_id: str) -> str:
    """Return the start of an id, which commands accept in its place."""
    return session_id[:_SHORT_ID_LENGTH]


async def resolve_session_id(stub: SessionServiceAsyncStub, wanted: str) -> str:
    """Return the whole id of a session: from its start, or `latest` for the one that was played last.

    An unknown id is returned as it is, so that the service refuses it.

    Raises:
        InvalidArgumentError: several sessions begin with it.
        NotFoundError: no session is stored.
    """
    if len(wanted) >= _ID_LENGTH:
        return wanted
    found = (await stub.ListSessions(session_pb2.ListSessionsRequest(page_size=_MAX_LISTED))).sessions
    if wanted == LATEST:
        if not found:
            raise NotFoundError("no session is stored; start one with `peripety play`")
        newest = max(
            found, key=lambda one: (one.update_time.ToNanoseconds(), one.create_time.ToNanoseconds())
        )
        return newest.session_id
    matching = [one.session_id for one in found if wanted and one.session_id.startswith(wanted)]
    if len(matching) > 1:
        raise InvalidArgumentError(
            f"{len(matching)} sessions begin with '{wanted}'; give more of the id",
        )
    return matching[0] if matching else wanted


class Game:
    """A session that is played from one point of view.

    Args:
        channel: the channel to the services.
        spec: the specification; empty if the scenario was deleted.
        viewpoint: the point of view.
        session: the session after its last turn.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        spec: dict[str, Any],
        viewpoint: PointOfView,
        session: session_pb2.Session,
    ) -> None:
        self._stub: SessionServiceAsyncStub = session_pb2_grpc.SessionServiceStub(channel)
        self.spec = spec
        self.viewpoint = viewpoint
        self.session = session

    @classmethod
    async def start(
        cls,
        channel: grpc.aio.Channel,
        scenario: scenario_pb2.CompiledScenario,
        *,
        seed: int | None,
        pov: str | None,
    ) -> Self:
        """Start a session of a stored scenario.

        Raises:
            InvalidArgumentError: the point of view cannot be played.
        """
        viewpoint = select_point_of_view(scenario.spec, pov)
        request = session_pb2.CreateSessionRequest(
            request_id=str(uuid4()),
            scenario_id=scenario.scenario_id,
            seed=seed,
            pov_entity_id=viewpoint.entity_id,
        )
        stub = session_pb2_grpc.SessionServiceStub(channel)
        session = (await stub.CreateSession(request)).session
        return cls(channel, json.loads(scenario.spec), viewpoint, session)

    @classmethod
    async def resume(cls, channel: grpc.aio.Channel, wanted: str, *, pov: str | None) -> Self:
        """Continue a session, by its id, the start of its id, or `latest`.

        Raises:
            InvalidArgumentError: the id or the point of view is not valid.
            NotFoundError: the session does not exist.
        """
        stub = session_pb2_grpc.SessionServiceStub(channel)
        session_id = await resolve_session_id(stub, wanted)
        found = (await stub.GetSession(session_pb2.GetSessionRequest(session_id=session_id))).session
        try:
            scenarios = scenario_pb2_grpc.ScenarioServiceStub(channel)
            request = scenario_pb2.GetScenarioRequest(
                scenario_id=found.scenario_id, spec_hash=found.spec_hash
            )
            spec = (await scenarios.GetScenario(request)).scenario.spec
        except NotFoundError:
            # Sessions outlive their scenario, which only gives them names.
            spec = b"{}"
        game = cls(channel, json.loads(spec), select_point_of_view(spec, pov), found)
        await game.refresh()
        return game

    @property
    def state(self) -> dict[str, Any]:
        """The visible state."""
        return dict(json.loads(self.session.state or b"{}"))

    @property
    def legal_actions(self) -> Sequence[engine_pb2.LegalAction]:
        """The legal actions of the next turn."""
        return self.session.legal_actions

    @property
    def is_out_of_time(self) -> bool:
        """True if the turns of the scenario's horizon are played; a session may continue beyond it."""
        horizon = self.spec.get("horizon")
        return isinstance(horizon, int | float) and self.session.turn >= horizon

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""
        return self.session.status.kind in ENDED

    async def refresh(self) -> None:
        """Read the session again."""
        request = session_pb2.GetSessionRequest(
            session_id=self.session.session_id,
            pov_entity_id=self.viewpoint.entity_id,
        )
        self.session = (await self._stub.GetSession(request)).session

    async def take_turn(self, choice: TurnInput) -> AsyncIterator[session_pb2.TurnEvent]:
        """Play a turn and yield its events; then the session is read again."""
        request = session_pb2.TakeTurnRequest(
            session_id=self.session.session_id,
            request_id=str(uuid4()),
            expected_turn=self.session.turn + 1,
            actions=choice.actions,
            input=choice.words,
            pov_entity_id=self.viewpoint.entity_id,
        )
        async for response in self._stub.TakeTurn(request):
            yield response.event
        await self.refresh()

    async def rewind(self, turn: int) -> None:
        """Remove the turns after a turn; 0 is the start.

        Raises:
            InvalidArgumentError: the turn is not before the current one.
        """
        request = session_pb2.RewindSessionRequest(
            request_id=str(uuid4()),
            session_id=self.session.session_id,
            turn=turn,
            expected_turn=self.session.turn,
            pov_entity_id=self.viewpoint.entity_id,
        )
        self.session = (await self._stub.RewindSession(request)).session

    async def fork(self) -> None:
        """Continue in a copy of the session; the session itself stays as it is."""
        request = session_pb2.ForkSessionRequest(
            request_id=str(uuid4()),
            session_id=self.session.session_id,
            pov_entity_id=self.viewpoint.entity_id,
        )
        self.session = (await self._stub.ForkSession(request)).session

    async def ask(self, question: str) -> session_pb2.AskSessionResponse:
        """Answer a question from the record of the session."""
        request = session_pb2.AskSessionRequest(
            session_id=self.session.session_id,
            question=question,
            pov_entity_id=self.viewpoint.entity_id,
        )
        return await self._stub.AskSession(request)

    async def forecast(
        self,
        runs: int,
        first: engine_pb2.ActionCall | None = None,
    ) -> session_pb2.ForecastOutcomesResponse:
        """Forecast how the session ends with the random persona.

        Args:
            runs: number of simulated futures.
            first: the action of the next turn; None leaves it to the persona.

        Raises:
            FailedPreconditionError: the run has ended, or the action is not legal.
        """
        request = session_pb2.ForecastOutcomesRequest(
            session_id=self.session.session_id,
            runs=runs,
            actions=[first] if first is not None else [],
            pov_entity_id=self.viewpoint.entity_id,
        )
        last = session_pb2.ForecastOutcomesResponse()
        async for response in self._stub.ForecastOutcomes(request):
            last = response
        return last

    async def recall_last_turn(self) -> AsyncIterator[session_pb2.TurnEvent]:
        """Yield the recorded events of the last turn; none before the first one."""
        if self.session.turn:
            request = session_pb2.ResumeTurnRequest(
                session_id=self.session.session_id,
                turn=self.session.turn,
                pov_entity_id=self.viewpoint.entity_id,
            )
            async for response in self._stub.ResumeTurn(request):
                yield response.event
