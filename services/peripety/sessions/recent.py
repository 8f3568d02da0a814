"""The last turns of the sessions that are being played, so that not every turn reads them again."""

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
"""Of the records of one session; longer ones are read again."""


class RecentTurns:
    """Knows the last turns of sessions.

    What is kept of a session holds as long as nothing else has happened in it, in whichever process:
    `Session.last_sequence` counts all that happens, and is never the same again.

    Args:
        store: where sessions are kept.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, tuple[CommittedTurn, ...]]] = OrderedDict()

    async def of(self, session: Session) -> tuple[CommittedTurn, ...]:
        """The last turns of a session, oldest first; at most `REMEMBERED_TURNS`."""
        sequence, turns = self._kept.get(session.session_id, (0, ()))
        if sequence == session.last_sequence:
            return turns
        first = session.turn - REMEMBERED_TURNS
        return tuple(await self._store.turns(session.session_id, first, REMEMBERED_TURNS))

    def keep(self, session: Session, turns: Sequence[CommittedTurn]) -> None:
        """Note the last turns of a session as it was just committed."""
        last = tuple(turns[-REMEMBERED_TURNS:])
        self._kept.pop(session.session_id, None)
        if sum(len(turn.record) for turn in last) <= _MOST_BYTES:
            self._kept[session.session_id] = session.last_sequence, last
        if len(self._kept) > _MOST_SESSIONS:
            self._kept.popitem(last=False)
