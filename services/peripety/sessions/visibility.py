"""Visibility: the projection of states and events to a viewer, and the only path from the engine to a client.

`sim.View` filters states and changes by the visibility labels of the scenario; this module applies it to the
events of a session. Prompts, streams, reads and errors contain only what the projection lets through.

Dice follow the visibility of prose: their purpose is text of a narrator who knows its audience's secrets. The
rules themselves and their literals are public: which actions were tried and are legal, which event occurred,
log lines, and the messages of end conditions. Of a failed rule, its code and path are public. The engine's
message may quote the state and is replaced.
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

# The messages of these errors depend on the request, the scenario or fixed limits, never on the state.
_TELLING_NOTHING = frozenset(
    {"ILLEGAL_PARAM", "PRECONDITION_FAILED", "STATE_LIMIT", "TURN_LIMIT", "ACTIONS_REJECTED"}
)
_FAILURE = "the rule could not be executed: {}"
_Failure = TypeVar("_Failure", RuleError, RuleFailed)


class Viewers:
    """Views of the sessions of a scenario."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._entities = {entity["id"]: entity for entity in spec.get("entities", ())}
        self._visibility = Visibility(spec)

    def view(self, viewer: str | None) -> SessionView:
        """Return the view of an entity, or the public view for None.

        Raises:
            NotFoundError: the entity does not exist.
            InvalidArgumentError: the entity is not playable.
        """
        if viewer is not None:
            entity = self._entities.get(viewer)
            if entity is None:
                raise NotFoundError(
                    f".pov_entity_id: the scenario has no entity '{viewer[:64]}'; {self._choices()}",
                    code="UNKNOWN_ENTITY",
                )
            if not entity.get("playable"):
                reason = f"'{viewer}' is not playable; {self._choices()}"
                raise InvalidArgumentError(
                    f".pov_entity_id: {reason}",
                    code="NOT_PLAYABLE",
                    violations=[FieldViolation(".pov_entity_id", reason)],
                )
        return SessionView(self._visibility, viewer)

    def _choices(self) -> str:
        playable = [name for name, entity in self._entities.items() if entity.get("playable")][:8]
        listed = f"use one of {', '.join(playable)}, or leave" if playable else "leave"
        return f"{listed} the field empty for the public view"


class SessionView(View):
    """View of one viewer on the sessions of a scenario."""

    def failures(self, errors: Iterable[_Failure]) -> tuple[_Failure, ...]:
        """Return failures of rules with codes and paths, but only with messages that anyone may read."""
        return tuple(
            error if error.code in _TELLING_NOTHING else replace(error, message=_FAILURE.format(error.code))
            for error in errors
        )

    def hears(self, audience: str | None) -> bool:
        """Return True if the viewer may see prose narrated for `audience` (None: for everyone)."""
        return audience is None or audience == self.viewer

    def event(self, event: Event, audience: str | None) -> Event | None:
        """Return the visible part of an event of a turn narrated for `audience`, or None."""
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
