"""Projection of a session for a viewer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sessions.model import Session
    from peripety.sessions.rulesets import Ruleset

__all__ = ["SeenSession", "look"]


@dataclass(frozen=True, slots=True)
class SeenSession:
    """A session as seen by one viewer.

    Attributes:
        session: the session; its snapshot must not be shown to viewers.
        spec: the scenario.
        viewer: the entity whose view this is; None for the public view.
        state: the visible part of the state as canonical JSON.
        legal_actions: ids of the actions that are legal next.
    """

    session: Session
    spec: Mapping[str, Any]
    viewer: str | None
    state: bytes
    legal_actions: tuple[str, ...]


def look(session: Session, ruleset: Ruleset, pov: str | None) -> SeenSession:
    """Return the view of a session for an entity, or the public view for None.

    Raises:
        NotFoundError: the entity does not exist.
        InvalidArgumentError: the entity is not playable.
    """
    view = ruleset.viewers.view(pov)
    program = ruleset.program
    state = program.load_state(session.snapshot)
    goes_on = session.status.kind == "ongoing"
    return SeenSession(
        session=session,
        spec=ruleset.spec,
        viewer=pov,
        state=sim.canonical(view.state(state.tree())),
        legal_actions=program.legal_actions(state) if goes_on else (),
    )
