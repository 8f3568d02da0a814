"""Result of one simulated run, from the interpreter or from generated code."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ending"]


class Ending(NamedTuple):
    """Result of a run.

    Attributes:
        outcome: `lost`, `won`, `survived`, or `errored` if the state or a call exceeded its limits.
        condition: id of the condition that ended the run.
        turns: number of completed turns.
        tree: returns the final state tree, canonical.
    """

    outcome: str
    condition: str | None
    turns: int
    tree: Callable[[], bytes]

    def digest_line(self) -> bytes:
        """Return the line of the run in the digest: outcome, turns and state hash."""
        return f"{self.outcome} {self.turns} {hashlib.sha256(self.tree()).hexdigest()}\n".encode("ascii")
