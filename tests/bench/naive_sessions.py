"""Sessions as first planned: one web application with all state in memory.

`PYTHONPATH=tests python -m bench.naive_sessions SPEC PROVIDER` serves on a free port and prints it. A turn is
a POST whose answer is a stream of server-sent events. The prompt contains the whole state and all earlier
turns; the model is called once, through the official SDK; its prose is sliced when it is complete. Nothing is
stored, views are not filtered, and repeated requests are not recognised.

The reference core in Python interprets its rules, with the state as a live object: both sides play the same
turns, and this one does not read, write or hash states. The pauses that the plan made between slices are left
out, in its favour; its server has the usual fast event loop and parser.
"""

from __future__ import annotations

import json
import socket
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

from peripety import engine
from peripety.session.events import encode_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.engine import Program, State


SLICE = 100
_INSTRUCTIONS = (
    "You are the narrator and referee of a scenario. Tell what happened in this turn. Answer with one JSON"
    ' object: {"narrative": "...", "state_changes": []}.'
)


class Action(BaseModel):
    """Something that a player does."""

    id: str
    params: dict[str, Any] = {}


class Turn(BaseModel):
    """Request of a turn."""

    session_id: str
    actions: list[Action] = []
    input: str = ""


class Outcome(BaseModel):
    """Answer of the model."""

    narrative: str
    state_changes: list[dict[str, Any]] = []


@dataclass
class Session:
    """A game, while the process lives."""

    state: State
    told: list[dict[str, Any]] = field(default_factory=list)


class Game:
    """Every session of one scenario."""

    def __init__(self, program: Program, client: AsyncOpenAI) -> None:
        self._program = program
        self._client = client
        self._sessions: dict[str, Session] = {}

    def start(self) -> dict[str, str]:
        """Start a session."""
        session_id = str(uuid.uuid4())
        self._sessions[session_id] = Session(self._program.new_state())
        return {"session_id": session_id}

    def take(self, turn: Turn) -> StreamingResponse:
        """Play a turn."""
        session = self._sessions.get(turn.session_id)
        if session is None:
            raise HTTPException(404, "no such session")
        return StreamingResponse(self._play(session, turn), media_type="text/event-stream")

    async def _play(self, session: Session, turn: Turn) -> AsyncIterator[str]:
        changes: list[Any] = []
        for action in turn.actions:
            act = self._program.act(session.state, action.id, action.params)
            changes += map(encode_value, act.changes)
            yield _event("action_resolved", {"id": action.id, "accepted": act.accepted, "changes": changes})
        step = self._program.step(session.state)
        moved = [encode_value(change) for change in step.changes]
        yield _event("world_resolved", {"event": step.event, "changes": moved, "status": step.status.kind})
        outcome = await self._ask(session, turn, [*changes, *moved])
        for start in range(0, len(outcome.narrative), SLICE):
            yield _event("narrative_chunk", {"text": outcome.narrative[start : start + SLICE]})
        session.told.append({"turn": session.state.turn, "narrative": outcome.narrative})
        legal = self._program.legal_actions(session.state)
        yield _event("committed", {"turn": session.state.turn, "legal_actions": legal})

    async def _ask(self, session: Session, turn: Turn, changes: list[Any]) -> Outcome:
        question = {
            "state": session.state.tree(),
            "log": session.told,
            "turn": session.state.turn,
            "actions": [action.model_dump() for action in turn.actions],
            "input": turn.input,
            "changes": changes,
        }
        completion = await self._client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": _INSTRUCTIONS},
                {"role": "user", "content": json.dumps(question)},
            ],
            response_format={"type": "json_object"},
        )
        return Outcome.model_validate_json(completion.choices[0].message.content or "")


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def application(program: Program, provider: str) -> FastAPI:
    """The web application."""
    game = Game(program, AsyncOpenAI(base_url=provider, api_key="k", max_retries=0))
    app = FastAPI()
    app.post("/sessions")(game.start)
    app.post("/turns", response_model=None)(game.take)
    return app


async def _main(spec: bytes, provider: str) -> None:
    app = application(engine.compile(spec), provider)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sys.stdout.write(f"listening on 127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main(Path(sys.argv[1]).read_bytes(), sys.argv[2]))
