"""Where sessions and their turns are kept.

Turns stand on *lines*. A session has a line of its own; a fork begins a new line at a turn of another one and
copies nothing, so the turns of a session are those of its line and, before that, of the lines it comes from.
No turn is ever changed. Turns that nobody needs any more are deleted with whatever needed them last.
"""

from peripety.sessions.store.statements import End
from peripety.sessions.store.store import SNAPSHOT_TURNS, Past, SessionStore

__all__ = ["SNAPSHOT_TURNS", "End", "Past", "SessionStore"]
