"""The time that limits, breakers and retries go by."""

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
    """What time it is, and how to wait.

    Attributes:
        now: seconds on a clock that never goes back.
        sleep: waits so many seconds of that clock.
        deadline: the moment on that clock at which the caller stops waiting; None when nobody said.
        today: the date and the time of day, in UTC: prices and budgets go by them.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    deadline: Callable[[], float | None] = context.deadline
    today: Callable[[], datetime] = _today

    def left(self) -> float:
        """Seconds until the caller stops waiting; infinity when it waits for ever."""
        deadline = self.deadline()
        return math.inf if deadline is None else deadline - self.now()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until the event is set, but no longer than so many seconds."""
        if seconds == math.inf:
            await event.wait()
            return
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
