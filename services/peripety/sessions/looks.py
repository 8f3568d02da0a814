"""Sessions as their viewers see them."""

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
    """A session as one viewer sees it.

    Attributes:
        session: the session; its snapshot is not for viewers.
        spec: the scenario.
        viewer: the entity whose view this is; None for the public part.
        state: the part of the state that the viewer may see, as canonical JSON.
        legal_actions: ids of what can be tried next.
    """

    session: Session
    spec: Mapping[str, Any]
    viewer: str | None
    state: bytes
    legal_actions: tuple[str, ...]


def look(session: Session, ruleset: Ruleset, pov: str | None) -> SeenSession:
    """A session as an entity sees it; None for the public part.

    Raises:
        NotFoundError: there is no such entity.
        InvalidArgumentError: it is not a playable one.
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
