"""Branches: forks and rewinds of sessions, and comparison of two sessions."""

from peripety.sessions.branches.branches import Branches
from peripety.sessions.branches.past import state_at

__all__ = ["Branches", "state_at"]
