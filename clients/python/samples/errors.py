"""Decide by the class and the reason of an error, and show its message and its wrong fields."""

import asyncio
import os
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1.session_pb2 import CreateSessionRequest, GetSessionRequest, ListSessionsRequest
from peripety.client import AsyncClient
from peripety.client.errors import Aborted, InvalidArgument, NotFound

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")
SPEC = Path("scenario.json").read_bytes()


async def main() -> None:
    """Cause three errors, and recover from the second one."""
    async with AsyncClient(ADDRESS) as client:
        try:
            await client.sessions.GetSession(GetSessionRequest(session_id="unknown"))
        except NotFound as error:
            print(f"{error.reason}: {error.message}")
        request = CompileScenarioRequest(spec=SPEC)
        async for compiled in client.follow(client.scenarios.CompileScenario, request):
            create = CreateSessionRequest(scenario_id=compiled.compiled.scenario_id)
        session = (await client.sessions.CreateSession(create)).session
        session.turn = 5  # as if another client had rewound the session
        try:
            await anext(client.play(session, "tend"))
        except Aborted as error:
            read = await client.sessions.GetSession(GetSessionRequest(session_id=session.session_id))
            print(f"{error.reason}: read the session again, turn {read.session.turn}")
        try:
            await client.sessions.ListSessions(ListSessionsRequest(page_size=-1))
        except InvalidArgument as error:
            print(f"{error.reason}: {error.violations[0].field}: {error.violations[0].description}")


asyncio.run(main())
