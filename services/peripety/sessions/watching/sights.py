"""Cached projections of turn events: computed once per view, for all its watchers.

A hundred watchers of one view cost one projection and one encoding; each further watcher only costs sending
the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sessions.events import Accepted
from peripety.sessions.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.model import CommittedTurn
    from peripety.sessions.visibility import SessionView

__all__ = ["Happened", "RecordedTurn", "Sight"]


class Sight:
    """An event as seen from one point of view, with its encoding.

    Attributes:
        seen: the projected event.
    """

    __slots__ = ("_encoded", "seen")

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._encoded: bytes | None = None

    def encoded(self, encode: Callable[[Seen], bytes]) -> bytes:
        """Return the encoded event, cached; `encode` must always be the same function."""
        if self._encoded is None:
            self._encoded = encode(self.seen)
        return self._encoded


class Happened:
    """A complete event of a turn, with its projections.

    Args:
        session_id: the session.
        turn: the turn.
        sequence: its position among all events of the session.
        event: the event.
        audience: the entity the turn is narrated for; None for everyone.
        spec: the scenario.
    """

    __slots__ = ("_audience", "_sights", "_spec", "event", "sequence", "session_id", "turn")

    def __init__(
        self,
        session_id: str,
        turn: int,
        sequence: int,
        event: Event,
        audience: str | None,
        spec: Mapping[str, Any],
    ) -> None:
        self.session_id = session_id
        self.turn = turn
        self.sequence = sequence
        self.event = event
        self._audience = audience
        self._spec = spec
        self._sights: dict[str | None, Sight] = {}

    def sight(self, view: SessionView) -> Sight:
        """Return the projection of the event for a view."""
        sight = self._sights.get(view.viewer)
        if sight is None:
            event = view.event(self.event, self._audience)
            sight = Sight(Seen(self.session_id, self.turn, self.sequence, event, self._spec))
            self._sights[view.viewer] = sight
        return sight


class RecordedTurn:
    """A committed turn with its events.

    Args:
        turn: number of the turn.
        events: all its events, in order.

    Attributes:
        attempt_id: the attempt that was committed.
    """

    __slots__ = ("attempt_id", "events", "turn")

    def __init__(self, turn: int, events: Sequence[Happened]) -> None:
        self.turn = turn
        self.events = tuple(events)
        first = self.events[0].event
        self.attempt_id = first.attempt_id if isinstance(first, Accepted) else None

    @classmethod
    def of(cls, session_id: str, spec: Mapping[str, Any], turn: CommittedTurn) -> RecordedTurn:
        """Convert a turn read from the log."""
        numbered = enumerate(turn.events, turn.first_sequence)
        return cls(
            turn.turn,
            [
                Happened(session_id, turn.turn, sequence, event, turn.pov, spec)
                for sequence, event in numbered
            ],
        )

    @property
    def first_sequence(self) -> int:
        """Sequence of its first event."""
        return self.events[0].sequence

    @property
    def last_sequence(self) -> int:
        """Sequence of its last event."""
        return self.events[-1].sequence
