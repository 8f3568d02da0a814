"""Play a session to its end without asyncio, and print each event as it arrives."""

import os
from pathlib import Path

from peripety.api.common.v1.engine_pb2 import RUN_STATUS_KIND_ONGOING, LegalAction, RunStatusKind
from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.api.session.v1.session_pb2 import CreateSessionRequest
from peripety.client import Client, action

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")


def choice(legal: list[LegalAction], turn: int) -> LegalAction:
    """Return the actions in turn."""
    return legal[turn % len(legal)]


with Client(ADDRESS) as client:
    request = CompileScenarioRequest(spec=Path("scenario.json").read_bytes())
    *_, last = client.follow(client.scenarios.CompileScenario, request)
    created = client.sessions.CreateSession(
        CreateSessionRequest(scenario_id=last.compiled.scenario_id, seed=7)
    )
    session = created.session
    while session.status.kind == RUN_STATUS_KIND_ONGOING:
        chosen = choice(list(session.legal_actions), session.turn)
        params = {param.name: param.minimum for param in chosen.params}
        for event in client.play(session, action(chosen.action_id, **params)):
            kind = event.WhichOneof("event")
            if kind == "accepted":
                print(f"--- turn {event.turn}: {chosen.name}")  # a second time: the turn started again
            elif kind == "narrative_chunk":
                print(event.narrative_chunk.text, end="", flush=True)
            elif kind == "world_resolved":
                for change in event.world_resolved.changes:
                    print(f"{change.path}: {change.before.decode()} -> {change.after.decode()}")
        print()
    print(RunStatusKind.Name(session.status.kind), session.status.condition, "after turn", session.turn)
