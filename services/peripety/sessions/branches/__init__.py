"""Time travel: forks of sessions, rewinds, and how two sessions differ."""

from peripety.sessions.branches.branches import Branches
from peripety.sessions.branches.past import state_at

__all__ = ["Branches", "state_at"]
