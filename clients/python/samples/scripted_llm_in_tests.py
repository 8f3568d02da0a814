"""Test of a game whose model is scripted: the same words in every run, without a key and without cost.

Start the server with `MODEL_PROVIDER=scripted PERIPETY_SCRIPT=clients/samples/script.toml peripety serve`.
"""

import os
import unittest
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1.session_pb2 import CreateSessionRequest
from peripety.client import AsyncClient

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")
SPEC = Path("scenario.json").read_bytes()


class NarrationTest(unittest.IsolatedAsyncioTestCase):
    """The game shows the narration of the model."""

    async def test_the_player_hears_the_wind(self) -> None:
        """The script answers "I listen" with one sentence, and everything else with another."""
        async with AsyncClient(ADDRESS) as client:
            request = CompileScenarioRequest(spec=SPEC)
            async for compiled in client.follow(client.scenarios.CompileScenario, request):
                create = CreateSessionRequest(scenario_id=compiled.compiled.scenario_id, seed=7)
            session = (await client.sessions.CreateSession(create)).session
            async for event in client.play(session, "tend", text="I listen at the window."):
                pass
            self.assertIn("There is only the wind.", event.committed.narrative)
            self.assertEqual(event.committed.model, "scripted/scripted")
            async for event in client.play(session, "tend"):
                pass
            self.assertIn("The watch", event.committed.narrative)


if __name__ == "__main__":
    unittest.main()
