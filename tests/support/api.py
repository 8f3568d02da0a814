"""The main job, step by step, as a client of the services does it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.rpc.channel import open_channel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator


def new_id() -> str:
    """A fresh request id."""
    return str(uuid4())


@dataclass
class Api:
    """Calls of one client."""

    scenarios: scenario_pb2_grpc.ScenarioServiceAsyncStub
    sessions: session_pb2_grpc.SessionServiceAsyncStub

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str, sessions_address: str | None = None) -> AsyncIterator[Self]:
        """Connect to a server, or to two when sessions are served elsewhere."""
        async with open_channel(address) as one, open_channel(sessions_address or address) as other:
            yield cls(scenario_pb2_grpc.ScenarioServiceStub(one), session_pb2_grpc.SessionServiceStub(other))

    async def generate(self, description: str) -> list[scenario_pb2.GenerateScenarioResponse]:
        """All events of writing a specification."""
        request = scenario_pb2.GenerateScenarioRequest(
            request_id=new_id(),
            description=description,
            level=scenario_pb2.VALIDATION_LEVEL_DRY_RUN,
        )
        return [event async for event in self.scenarios.GenerateScenario(request)]

    async def compile(self, spec: bytes) -> list[scenario_pb2.CompileScenarioResponse]:
        """All events of compiling one."""
        request = scenario_pb2.CompileScenarioRequest(request_id=new_id(), spec=spec)
        return [event async for event in self.scenarios.CompileScenario(request)]

    async def session_of(self, spec: bytes) -> session_pb2.Session:
        """A new session of a specification that can be compiled."""
        compiled = (await self.compile(spec))[-1]
        assert compiled.HasField("compiled"), compiled
        scenario_id = compiled.compiled.scenario_id
        request = session_pb2.CreateSessionRequest(request_id=new_id(), scenario_id=scenario_id)
        return (await self.sessions.CreateSession(request)).session

    async def session(self, session_id: str) -> session_pb2.Session:
        """A session as it stands."""
        return (await self.sessions.GetSession(session_pb2.GetSessionRequest(session_id=session_id))).session

    async def turn(self, request: session_pb2.TakeTurnRequest) -> AsyncGenerator[session_pb2.TurnEvent]:
        """The events of a turn."""
        async for response in self.sessions.TakeTurn(request):
            yield response.event


def turn_request(session: session_pb2.Session) -> session_pb2.TakeTurnRequest:
    """The next turn of a session, with its first legal action that has no parameters."""
    plain = [action.action_id for action in session.legal_actions if not action.params]
    return session_pb2.TakeTurnRequest(
        session_id=session.session_id,
        request_id=new_id(),
        expected_turn=session.turn + 1,
        actions=[engine_pb2.ActionCall(action_id=action) for action in plain[:1]],
    )
