"""Turn context: the turn to narrate, and all data that its narration may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.sessions.model import CommittedTurn, Session
    from peripety.sessions.stage import Stage
    from peripety.sessions.visibility import SessionView

__all__ = ["REMEMBERED_TURNS", "Rules", "Scene"]

REMEMBERED_TURNS = 8
"""Maximum number of previous turns in a prompt."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One version of a scenario, as a cache key for values derived from its rules alone."""

    spec_hash: str
    spec: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scene:
    """The turn to narrate.

    Attributes:
        spec: the scenario.
        view: the view of the audience.
        turn: number of the turn.
        input: the player's input.
        session: the session before the turn.
        stage: the mechanics of the turn, which the narrator closes.
        past: the complete previous turns, oldest first.
    """

    spec: Mapping[str, Any]
    view: SessionView
    turn: int
    input: str
    session: Session
    stage: Stage
    past: tuple[CommittedTurn, ...]

    @property
    def rules(self) -> Rules:
        """The version of the scenario."""
        return Rules(self.session.spec_hash, self.spec)

    @property
    def action_names(self) -> dict[str, str]:
        """Names of the actions by id; an event may have the same id."""
        return _names(self.spec["actions"])

    @property
    def event_names(self) -> dict[str, str]:
        """Names of the random events by id."""
        return _names(self.spec["random_events"])


def _names(rules: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {rule["id"]: rule.get("name", rule["id"]) for rule in rules}
