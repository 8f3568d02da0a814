"""Cache of the last turns of active sessions, so that not every turn reads them from the database."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from peripety.sessions.narrating.scene import REMEMBERED_TURNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sessions.model import CommittedTurn, Session
    from peripety.sessions.store import SessionStore

__all__ = ["RecentTurns"]

_MOST_SESSIONS = 128
_MOST_BYTES = 64 * 1024
"""Maximum size of the records of one session; longer ones are not cached."""


class RecentTurns:
    """Cache of the last turns of sessions, bounded by number and size.

    An entry is valid until something else happens in the session, in any process. `Session.last_sequence`
    detects this: it counts all events and never repeats.

    Args:
        store: stores the sessions.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, tuple[CommittedTurn, ...]]] = OrderedDict()

    async def of(self, session: Session) -> tuple[CommittedTurn, ...]:
        """Return the last turns of a session, oldest first, as many as a narrator may use."""
        sequence, turns = self._kept.get(session.session_id, (0, ()))
        if sequence == session.last_sequence:
            return turns
        first = session.turn - REMEMBERED_TURNS
        return tuple(await self._store.turns(session.session_id, first, REMEMBERED_TURNS))

    def keep(self, session: Session, turns: Sequence[CommittedTurn]) -> None:
        """Cache the last turns of a session that was just committed."""
        last = tuple(turns[-REMEMBERED_TURNS:])
        self._kept.pop(session.session_id, None)
        if sum(len(turn.record) for turn in last) <= _MOST_BYTES:
            self._kept[session.session_id] = session.last_sequence, last
        if len(self._kept) > _MOST_SESSIONS:
            self._kept.popitem(last=False)
