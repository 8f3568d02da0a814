"""Time-outs of one answer, each bounded by the caller's deadline."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from peripety.context import remaining
from peripety.errors import DeadlineError, PeripetyError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["Patience", "Timeouts"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time-outs in seconds; the caller's deadline bounds each of them.

    Attributes:
        connect: for establishing the connection.
        first_event: from the request to the first event, including the time to read a long prompt. Comments
            and blank lines, which only show that the server is alive, do not count as events.
        between_chunks: between two pieces of the answer.
        total: from the request to the end of the answer.
    """

    connect: float = 10.0
    first_event: float = 120.0
    between_chunks: float = 60.0
    total: float = 1_800.0


class Patience:
    """Time-outs of the successive waits for one answer; starts with the request.

    Args:
        server: name of the server in messages.
        timeouts: the limits.
    """

    def __init__(self, server: str, timeouts: Timeouts) -> None:
        self._server = server
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._total_by = now + timeouts.total
        self._first_by: float | None = now + timeouts.first_event

    def first_event_seen(self) -> None:
        """Switch from the first-event time-out to the one between chunks."""
        self._first_by = None

    async def wait_for(self, arrival: Awaitable[T]) -> T:
        """Wait for the next piece, up to the nearest limit.

        Raises:
            DeadlineError: the caller's deadline passed first.
            UnavailableError: the provider took too long.
        """
        now = self._loop.time()
        next_by = self._first_by or now + self._timeouts.between_chunks
        left = remaining()
        caller_by = float("inf") if left is None else now + left
        try:
            async with asyncio.timeout_at(min(next_by, self._total_by, caller_by)) as scope:
                return await arrival
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._exhausted(next_by, caller_by) from None

    def _exhausted(self, next_by: float, caller_by: float) -> PeripetyError:
        if caller_by <= min(next_by, self._total_by):
            return DeadlineError(
                f"deadline exceeded while provider {self._server} was answering; allow more time"
            )
        limits = self._timeouts
        if self._total_by <= next_by:
            problem = f"answer not complete within {limits.total:g} s"
        elif self._first_by is not None:
            problem = f"answer not started within {limits.first_event:g} s"
        else:
            problem = f"answer paused for {limits.between_chunks:g} s"
        return UnavailableError(f"provider {self._server}: {problem}", code="PROVIDER_TIMEOUT")
