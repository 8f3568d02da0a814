"""A turn while this process plays it, for those who follow the session."""

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
    """The events of an attempt to play the next turn of a session; none of them is recorded yet.

    Args:
        session: the session before the turn.
        audience: for whom it is narrated; None for everyone.
        spec: the scenario.

    Attributes:
        session_id: the session.
        turn: the turn.
        after: sequence of the last recorded event, which the first of these follows.
        attempt_id: names the attempt; None before its first event.
        events: what happened in it.
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
        """Let followers hear of an event; `Accepted` makes those before it void."""
        if isinstance(event, Accepted):
            self.attempt_id = event.attempt_id
            # A new list: who is in the middle of the old one notices.
            self.events = []
        self.events.append(self.happened(event))
        if self.heard is not None:
            self.heard()

    def happened(self, event: Event) -> Happened:
        """The event as the next one of the attempt."""
        sequence = self.after + len(self.events) + 1
        return Happened(self.session_id, self.turn, sequence, event, self._audience, self._spec)
