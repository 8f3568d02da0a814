"""Compile a scenario, start a session and play its first turn."""

import asyncio
import os
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1.session_pb2 import CreateSessionRequest
from peripety.client import AsyncClient

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")
SPEC = Path("scenario.json").read_bytes()


async def main() -> None:
    """Print the narration of the turn."""
    async with AsyncClient(ADDRESS) as client:
        request = CompileScenarioRequest(spec=SPEC)
        async for response in client.follow(client.scenarios.CompileScenario, request):
            print(response.progress.message or "compiled")
        scenario_id = response.compiled.scenario_id
        created = await client.sessions.CreateSession(CreateSessionRequest(scenario_id=scenario_id, seed=7))
        session = created.session
        async for event in client.play(session, session.legal_actions[0].action_id):
            print(event.narrative_chunk.text, end="", flush=True)
        print(f"\nturn {session.turn}: {session.chain_hash}")


asyncio.run(main())
