"""Live turn: the events of a turn that this process is playing, for watchers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sessions.events import Accepted
from peripety.sessions.watching.sights import Happened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.sessions.events import Event
    from peripety.sessions.model import Session

__all__ = ["Live"]


class Live:
    """Events of an attempt to play the next turn of a session; none of them is committed yet.

    Args:
        session: the session before the turn.
        audience: the entity it is narrated for; None for everyone.
        spec: the scenario.

    Attributes:
        session_id: the session.
        turn: the turn.
        after: sequence of the last recorded event before the attempt.
        attempt_id: id of the attempt; None before its first event.
        events: events so far.
        heard: called after each event.
    """

    def __init__(self, session: Session, audience: str | None, spec: Mapping[str, Any]) -> None:
        self.session_id = session.session_id
        self.turn = session.turn + 1
        self.after = session.last_sequence
        self.attempt_id: str | None = None
        self.events: list[Happened] = []
        self._audience = audience
        self._spec = spec
        self.heard: Callable[[], None] | None = None

    def tell(self, event: Event) -> None:
        """Publish an event to watchers; `Accepted` voids the previous ones."""
        if isinstance(event, Accepted):
            self.attempt_id = event.attempt_id
            # A new list, so that a watcher that iterates over the old one notices the restart.
            self.events = []
        self.events.append(self.happened(event))
        if self.heard is not None:
            self.heard()

    def happened(self, event: Event) -> Happened:
        """Return an event with the next sequence of the attempt."""
        sequence = self.after + len(self.events) + 1
        return Happened(self.session_id, self.turn, sequence, event, self._audience, self._spec)
