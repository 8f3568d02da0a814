"""Storage of sessions and their turns.

Turns belong to *lines* (history segments). A session has its own line. A fork starts a new line at a turn of
another one and copies nothing, so the turns of a session are those of its line and of the ancestors of that
line. Turns are never changed. Turns that no session references any more are deleted together with the last
reference.
"""

from peripety.sessions.store.statements import End
from peripety.sessions.store.store import SNAPSHOT_TURNS, Past, SessionStore

__all__ = ["SNAPSHOT_TURNS", "End", "Past", "SessionStore"]
