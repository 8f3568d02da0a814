"""A turn that is to be told, and all that its narrator may draw on."""

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
"""How many of the turns before a narrator is told of at most."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One version of a scenario, by which to remember what follows from its rules alone."""

    spec_hash: str
    spec: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scene:
    """A turn that is to be told.

    Attributes:
        spec: the scenario.
        view: what those may see for whom it is narrated.
        turn: the number of the turn.
        input: what the player said.
        session: the session before the turn.
        stage: the mechanics of the turn, which the narrator closes.
        past: the last turns before, oldest first and whole; at most `REMEMBERED_TURNS` are told.
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
        """What the actions are called, by id; an event may have the same id."""
        return _names(self.spec["actions"])

    @property
    def event_names(self) -> dict[str, str]:
        """What the random events are called, by id."""
        return _names(self.spec["random_events"])


def _names(rules: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {rule["id"]: rule.get("name", rule["id"]) for rule in rules}
