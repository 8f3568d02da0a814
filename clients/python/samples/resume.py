"""Follow a session from another connection, leave in the middle, and continue behind the last event."""

import asyncio
import os
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1.session_pb2 import CreateSessionRequest, ResumeTurnRequest
from peripety.client import AsyncClient

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")
SPEC = Path("scenario.json").read_bytes()


async def main() -> None:
    """Print the events before and after the loss. Within one client, `play` does this by itself."""
    async with AsyncClient(ADDRESS) as client:
        request = CompileScenarioRequest(spec=SPEC)
        async for compiled in client.follow(client.scenarios.CompileScenario, request):
            create = CreateSessionRequest(scenario_id=compiled.compiled.scenario_id)
        session = (await client.sessions.CreateSession(create)).session
        async for event in client.play(session, "tend"):
            if event.HasField("accepted"):
                last = ResumeTurnRequest(session_id=session.session_id, turn=event.turn)
                last.attempt_id = event.accepted.attempt_id
            if event.sequence <= 3:  # as if the program had ended after the third event
                last.after_sequence = event.sequence
                print(f"before: {event.sequence} {event.WhichOneof('event')}")
    async with AsyncClient(ADDRESS) as client:  # the program was started again; `last` was stored
        async for response in client.follow(client.sessions.ResumeTurn, last):
            print(f"after: {response.event.sequence} {response.event.WhichOneof('event')}")


asyncio.run(main())
