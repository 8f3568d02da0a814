"""How a run of a dry-run ended, whoever played it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ending"]


class Ending(NamedTuple):
    """How a run ended.

    Attributes:
        outcome: `lost`, `won`, `survived`, or `errored` when the state, or a call, outgrew its limits.
        condition: the id of the condition that ended it.
        turns: how many turns were completed.
        tree: gives the final state tree, canonical.
    """

    outcome: str
    condition: str | None
    turns: int
    tree: Callable[[], bytes]

    def digest_line(self) -> bytes:
        """What a digest of runs says about this one: how it ended, when, and the hash of its state."""
        return f"{self.outcome} {self.turns} {hashlib.sha256(self.tree()).hexdigest()}\n".encode("ascii")
