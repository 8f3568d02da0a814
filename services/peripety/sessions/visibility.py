"""Who may see what of a session: the one way from the engine to anything that leaves it.

`sim.View` cuts states and changes by the labels of the scenario; here it meets the events of a session.
Prompts, streams, reads and errors hold what `SessionView` lets through; the rest is not in them.

What dice are cast for is said by a narrator who knows its audience's secrets, so dice are heard like prose.
Public by nature are the rules themselves and what is literal in them: which actions were tried and are
legal, which event happened, log lines, the messages of end conditions. Of a rule that failed, its code and
place are public; the engine's sentence may tell what stands in the state and is replaced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.errors import FieldViolation, InvalidArgumentError, NotFoundError
from peripety.sessions.events import (
    Accepted,
    ActionResolved,
    Committed,
    Dialogue,
    NarrativeChunk,
    NarrativeRetracted,
    Rolled,
    RuleFailed,
    WorldResolved,
)
from peripety.sim import RuleError, View, Visibility

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.sessions.events import Event

__all__ = ["SessionView", "Viewers"]

# What these say comes from the request, the scenario or fixed limits, never from the state.
_TELLING_NOTHING = frozenset(
    {"ILLEGAL_PARAM", "PRECONDITION_FAILED", "STATE_LIMIT", "TURN_LIMIT", "ACTIONS_REJECTED"}
)
_FAILURE = "the rule could not be carried out: {}"
_Failure = TypeVar("_Failure", RuleError, RuleFailed)


class Viewers:
    """Those who may look at the sessions of a scenario."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._entities = {entity["id"]: entity for entity in spec.get("entities", ())}
        self._visibility = Visibility(spec)

    def view(self, viewer: str | None) -> SessionView:
        """What an entity may see; None for the public part.

        Raises:
            NotFoundError: there is no such entity.
            InvalidArgumentError: it is not a playable one.
        """
        if viewer is not None:
            entity = self._entities.get(viewer)
            if entity is None:
                raise NotFoundError(
                    f".pov_entity_id: the scenario has no entity '{viewer[:64]}'; {self._choices()}",
                    code="UNKNOWN_ENTITY",
                )
            if not entity.get("playable"):
                reason = f"'{viewer}' cannot be played; {self._choices()}"
                raise InvalidArgumentError(
                    f".pov_entity_id: {reason}",
                    code="NOT_PLAYABLE",
                    violations=[FieldViolation(".pov_entity_id", reason)],
                )
        return SessionView(self._visibility, viewer)

    def _choices(self) -> str:
        playable = [name for name, entity in self._entities.items() if entity.get("playable")][:8]
        listed = f"use one of {', '.join(playable)}, or leave" if playable else "leave"
        return f"{listed} the field empty for the public part"


class SessionView(View):
    """What one viewer may see of a scenario's sessions."""

    def failures(self, errors: Iterable[_Failure]) -> tuple[_Failure, ...]:
        """Failures of rules: codes, places, and of the engine's words only those that anyone may read."""
        return tuple(
            error if error.code in _TELLING_NOTHING else replace(error, message=_FAILURE.format(error.code))
            for error in errors
        )

    def hears(self, audience: str | None) -> bool:
        """Whether prose that was narrated for `audience` (None: for everyone) may reach the viewer."""
        return audience is None or audience == self.viewer

    def event(self, event: Event, audience: str | None) -> Event | None:
        """What the viewer may see of an event of a turn narrated for `audience`; None for nothing of it."""
        hears = self.hears(audience)
        seen: Event | None = event
        match event:
            case NarrativeChunk() | NarrativeRetracted() | Dialogue() | Rolled():
                seen = event if hears else None
            case Accepted():
                seen = replace(event, input=event.input if hears else "")
            case ActionResolved():
                seen = replace(
                    event, changes=self.changes(event.changes), reasons=self.failures(event.reasons)
                )
            case WorldResolved():
                seen = replace(event, changes=self.changes(event.changes), errors=self.failures(event.errors))
            case RuleFailed():
                (seen,) = self.failures([event])
            case Committed():
                narrative = event.narrative if hears else ""
                seen = replace(event, changes=self.changes(event.changes), narrative=narrative)
        return seen
