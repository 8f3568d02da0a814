"""Visibility: the projection of states and events to a viewer, and the only path from the engine to a client.

`engine.View` filters states and changes by the visibility labels of the scenario; this module applies it to
the events of a session. Prompts, streams, reads and errors contain only what the projection lets through.

Dice follow the visibility of prose: their purpose is text of a narrator who knows its audience's secrets.
The rules themselves and their literals are public: which actions were tried and are legal, which event
occurred, log lines, and the messages of end conditions. Of a failed rule, its code and path are public. The
engine's message may quote the state and is replaced.

`MessageLimit` is the size limit of a message with turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.engine import RuleError, View, Visibility
from peripety.errors import FieldViolation, InvalidArgumentError, NotFoundError
from peripety.session.events import (
    NOT_UNDERSTOOD,
    Accepted,
    ActionResolved,
    Committed,
    DialogueSpoken,
    NarrativeChunk,
    NarrativeRetracted,
    Rolled,
    RuleFailed,
    WorldResolved,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.session.events import Event
    from peripety.session.types import CommittedTurn, Session


# Overhead of the enclosing response, and of an item of a list.
_ENVELOPE_BYTES = 1024
_ITEM_BYTES = 16


@dataclass(frozen=True, slots=True)
class TurnEventView:
    """An event as seen by one viewer.

    Attributes:
        session_id: the session.
        turn: the turn, from 1.
        sequence: its position among all recorded events of the session, from 1.
        event: the visible part of the event; None if nothing is visible.
        spec: the scenario.
    """

    session_id: str
    turn: int
    sequence: int
    event: Event | None
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn with its events as seen by one viewer."""

    turn: CommittedTurn
    events: tuple[TurnEventView, ...]


@dataclass(frozen=True, slots=True)
class MessageLimit:
    """Size limit of turns: every committed turn must fit into a message.

    Attributes:
        max_bytes: maximum size of a message in bytes.
        size_of: returns the size of the largest message with a turn or one of its events.
    """

    max_bytes: int
    size_of: Callable[[TurnView], int]

    def fits(self, turn: TurnView) -> bool:
        """Return True if the turn can be sent."""
        return self.size_of(turn) + _ENVELOPE_BYTES <= self.max_bytes

    def count_fitting(self, items: Sequence[Sequence[TurnView]], taken: int = 0) -> int:
        """Return how many items of one or two turns fit into a message after `taken` bytes; at least 1."""
        sizes = accumulate(sum(self.size_of(turn) + _ITEM_BYTES for turn in item) for item in items)
        return max(1, sum(taken + size + _ENVELOPE_BYTES <= self.max_bytes for size in sizes))


def project_turn(
    session: Session,
    spec: Mapping[str, Any],
    view: ViewerProjection,
    turn: CommittedTurn,
) -> Iterator[TurnEventView]:
    """Yield the recorded events of a turn as seen by one viewer."""
    for sequence, event in enumerate(turn.events, turn.first_sequence):
        yield TurnEventView(
            session.session_id,
            turn.turn,
            sequence,
            view.project_event(event, turn.pov),
            spec,
        )


# The messages of these errors depend on the request, the scenario or fixed limits, never on the state.
_SAFE_ERROR_CODES = frozenset(
    {"ILLEGAL_PARAM", "PRECONDITION_FAILED", "STATE_LIMIT", "TURN_LIMIT", "ACTIONS_REJECTED"}
    | {"OUTCOME_INVALID", "NARRATOR_TIMEOUT", "MODEL_UNAVAILABLE", "NARRATOR_FAILED", "BUDGET_EXHAUSTED"},
)
_HIDDEN_MESSAGE = "the rule could not be executed: {}"
_Failure = TypeVar("_Failure", RuleError, RuleFailed)


class Projector:
    """Views of the sessions of a scenario."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._entities = {entity["id"]: entity for entity in spec.get("entities", ())}
        self._visibility = Visibility(spec)

    def for_viewer(self, viewer: str | None) -> ViewerProjection:
        """Return the view of an entity, or the public view for None.

        Raises:
            NotFoundError: the entity does not exist.
            InvalidArgumentError: the entity is not playable.
        """
        if viewer is not None:
            entity = self._entities.get(viewer)
            if entity is None:
                raise NotFoundError(
                    f"pov_entity_id: the scenario has no entity '{viewer[:64]}'; {self._describe_choices()}",
                    code="UNKNOWN_ENTITY",
                )
            if not entity.get("playable"):
                reason = f"'{viewer}' is not playable; {self._describe_choices()}"
                raise InvalidArgumentError(
                    f"pov_entity_id: {reason}",
                    code="NOT_PLAYABLE",
                    violations=[FieldViolation(".pov_entity_id", reason)],
                )
        return ViewerProjection(self._visibility, viewer)

    def _describe_choices(self) -> str:
        playable = [f"'{name}'" for name, entity in self._entities.items() if entity.get("playable")][:8]
        listed = f"use {' or '.join(playable)}, or leave" if playable else "leave"
        return f"{listed} the field empty for the public view"


class ViewerProjection(View):
    """View of one viewer on the sessions of a scenario."""

    def project_failures(self, errors: Iterable[_Failure]) -> tuple[_Failure, ...]:
        """Return failures of rules with codes and paths, but only with messages that anyone may read."""
        return tuple(
            error
            if error.code in _SAFE_ERROR_CODES
            else replace(error, message=_HIDDEN_MESSAGE.format(error.code))
            for error in errors
        )

    def can_read_narration(self, audience: str | None) -> bool:
        """Return True if the viewer may see prose narrated for `audience` (None: for everyone)."""
        return audience is None or audience == self.viewer

    def project_event(self, event: Event, audience: str | None) -> Event | None:
        """Return the visible part of an event of a turn narrated for `audience`, or None."""
        hears = self.can_read_narration(audience)
        seen: Event | None = event
        match event:
            case NarrativeChunk() | NarrativeRetracted() | DialogueSpoken() | Rolled():
                seen = event if hears else None
            case Accepted():
                seen = replace(event, input=event.input if hears else "")
            case ActionResolved():
                seen = replace(
                    event,
                    changes=self.project_changes(event.changes),
                    reasons=self.project_failures(event.reasons),
                )
            case WorldResolved():
                seen = replace(
                    event,
                    changes=self.project_changes(event.changes),
                    errors=self.project_failures(event.errors),
                )
            case RuleFailed(code=code) if code == NOT_UNDERSTOOD and hears:
                seen = event
            case RuleFailed():
                (seen,) = self.project_failures([event])
            case Committed():
                narrative = event.narrative if hears else ""
                seen = replace(event, changes=self.project_changes(event.changes), narrative=narrative)
        return seen
