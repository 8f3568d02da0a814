"""Turns that are about to be told, without a store: a real engine, and whatever session a test wants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.gateway.model import Spent
from peripety.sessions.events import Accepted, Committed
from peripety.sessions.mechanics import Board
from peripety.sessions.model import ActionCall, CommittedTurn, NewSession, Resolution, Session
from peripety.sessions.narrating.scene import Scene
from peripety.sessions.opening import opened
from peripety.sessions.stage import set_up
from peripety.sessions.visibility import Viewers

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["scene_of", "session_of", "turn_of"]


def session_of(program: sim.Program, **more: Any) -> Session:
    """A session of a scenario before its first turn, or as `more` says."""
    session = opened(program, NewSession("request", "scenario"))
    fixed: dict[str, Any] = {"session_id": "s", "line_id": "l", "created": 0, "updated": 0}
    return replace(session, **fixed | more)


def scene_of(
    document: bytes,
    actions: Sequence[ActionCall] = (ActionCall("act", {}),),
    *,
    viewer: str | None = None,
    spoken: str = "",
    past: tuple[CommittedTurn, ...] = (),
    **session: Any,
) -> Scene:
    """The next turn of a session, after what the player chose."""
    program = sim.compile(document)
    playing = session_of(program, **session)
    stage, _ = set_up(Board(program, playing.snapshot), actions, mistakes_cost_nothing=False)
    if stage is None:
        raise AssertionError("the turn outgrew a limit")
    view = Viewers(program.spec).view(viewer)
    return Scene(program.spec, view, playing.turn + 1, spoken, playing, stage, past)


def turn_of(scene: Scene, narrative: str, *, pov: str | None = None, spoken: str = "") -> CommittedTurn:
    """The turn of a scene as it is recorded once it was told."""
    played = scene.stage.foresee()
    accepted = Accepted("attempt", "request", (), spoken)
    committed = Committed(
        state_hash=played.state_hash,
        chain_hash="",
        status=played.world.status,
        legal_actions=played.legal_actions,
        usage=Spent(),
        changes=played.changes,
        narrative=narrative,
        resolution=Resolution.NARRATED,
        model="",
        commit_time=0,
    )
    events = (accepted, *played.events, committed)
    return CommittedTurn(scene.turn, "request", "", pov, played.record, 1, events)
