"""Turns that are about to be told, without a store: a real engine, and whatever session a test wants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.gateway.types.response import UsageTotal
from peripety.session.events import Accepted, Committed
from peripety.session.narration.turn_context import NarrationContext
from peripety.session.session_manager import create_session
from peripety.session.speculation import begin_turn
from peripety.session.turn_engine import TurnTransaction
from peripety.session.types import CommittedTurn, NewSession, PlayerAction, Resolution, Session
from peripety.session.visibility import Projector

if TYPE_CHECKING:
    from collections.abc import Sequence


def session_of(program: engine.Program, **more: Any) -> Session:
    """A session of a scenario before its first turn, or as `more` says."""
    session = create_session(program, NewSession("request", "scenario"))
    fixed: dict[str, Any] = {"session_id": "s", "line_id": "l", "created": 0, "updated": 0}
    return replace(session, **fixed | more)


def scene_of(
    document: bytes,
    actions: Sequence[PlayerAction] = (PlayerAction("act", {}),),
    *,
    viewer: str | None = None,
    spoken: str = "",
    past: tuple[CommittedTurn, ...] = (),
    **session: Any,
) -> NarrationContext:
    """The next turn of a session, after what the player chose."""
    program = engine.compile(document)
    playing = session_of(program, **session)
    stage, _ = begin_turn(TurnTransaction(program, playing.snapshot), actions, abandon_if_all_rejected=False)
    if stage is None:
        raise AssertionError("the turn outgrew a limit")
    view = Projector(program.spec).for_viewer(viewer)
    return NarrationContext(program.spec, view, playing.turn + 1, spoken, playing, stage, past)


def turn_of(
    scene: NarrationContext,
    narrative: str,
    *,
    pov: str | None = None,
    spoken: str = "",
) -> CommittedTurn:
    """The turn of a scene as it is recorded once it was told."""
    played = scene.speculation.preview()
    accepted = Accepted("attempt", "request", (), spoken)
    committed = Committed(
        state_hash=played.state_hash,
        chain_hash="",
        status=played.world.status,
        legal_actions=played.legal_actions,
        usage=UsageTotal(),
        changes=played.changes,
        narrative=narrative,
        resolution=Resolution.NARRATED,
        model="",
        commit_time=0,
    )
    events = (accepted, *played.events, committed)
    return CommittedTurn(scene.turn, "request", "", pov, played.record, 1, events)
