"""Clock of rate limits, breakers and retries; replaceable in tests."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from peripety import context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Clock"]


def _today() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """Source of time and of delays.

    Attributes:
        now: monotonic clock, in seconds.
        sleep: waits for so many seconds.
        deadline: deadline of the caller on that clock; None for none.
        today: date and time in UTC, for prices and budgets.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    deadline: Callable[[], float | None] = context.deadline
    today: Callable[[], datetime] = _today

    def left(self) -> float:
        """Return the seconds until the caller's deadline; infinity without one."""
        deadline = self.deadline()
        return math.inf if deadline is None else deadline - self.now()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until the event is set, for at most so many seconds."""
        if seconds == math.inf:
            await event.wait()
            return
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
