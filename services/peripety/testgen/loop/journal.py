"""The port to wherever a run is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.events import RunEvent
    from peripety.testgen.loop.ledger import Account

__all__ = ["Journal"]


class Journal(Protocol):
    """Writes down what happens in a run before anybody is told of it."""

    async def record(self, events: Sequence[RunEvent], account: Account) -> None:
        """Write down events and the account that goes with them, in one transaction; then tell the events.

        Args:
            events: what happened, in order; none where only the account has changed.
            account: replaces the one before.

        Raises:
            Exception: whatever means that the work must not go on: the run is somebody else's now, or cannot
                be written down. It goes through the runner as it is.
        """
        ...
