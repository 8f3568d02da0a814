"""Port to the durable event log of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.events import RunEvent
    from peripety.testgen.loop.ledger import Account

__all__ = ["Journal"]


class Journal(Protocol):
    """Event sink that records events before they become visible."""

    async def record(self, events: Sequence[RunEvent], account: Account) -> None:
        """Record events and the budget account in one transaction, and publish the events.

        Args:
            events: the events, in order; empty if only the account has changed.
            account: replaces the stored one.

        Raises:
            Exception: the work must stop, because another process owns the run now or the write failed. The
                runner does not handle it.
        """
        ...
