"""Call context: deadline and request id of the current call; and clocks, which tests replace.

The server sets both at the start of a call, the client passes both to the next service, and domain code may
read them. They are context variables, so tasks started inside the call inherit them. The module is
independent of the transport.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from peripety.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def now_micros() -> int:
    """Return the wall-clock time in microseconds since 1970."""
    return time.time_ns() // 1000


_deadline: ContextVar[float | None] = ContextVar("peripety_deadline", default=None)
_request_id: ContextVar[str | None] = ContextVar("peripety_request_id", default=None)
_caller: ContextVar[str] = ContextVar("peripety_caller", default="")


def call_deadline() -> float | None:
    """Return the deadline of the call on the monotonic clock, or None if it has none."""
    return _deadline.get()


def remaining() -> float | None:
    """Return the seconds until the deadline, never negative, or None without a deadline."""
    moment = _deadline.get()
    return None if moment is None else max(0.0, moment - time.monotonic())


def request_id() -> str | None:
    """Return the request id of the current call, or None outside a call."""
    return _request_id.get()


def caller() -> str:
    """Return the name of the caller, as an authenticating proxy gives it; empty without one."""
    return _caller.get()


def begin_call(*, request_id: str | None, timeout: float | None, caller: str = "") -> None:
    """Start a call in the current context, which applies to the rest of this task and the tasks it starts.

    Args:
        request_id: id of the call.
        timeout: seconds that the caller is willing to wait; None for no limit.
        caller: name of the caller; empty if the deployment does not distinguish callers.
    """
    _request_id.set(request_id)
    _caller.set(caller)
    _deadline.set(None if timeout is None else time.monotonic() + timeout)


@asynccontextmanager
async def timeout_at_deadline(timeout: float | None) -> AsyncIterator[None]:  # noqa: ASYNC109 - it is made of asyncio.timeout
    """Limit the block to `timeout` seconds, and to the time that the call has left.

    Code inside the block sees the shorter deadline.

    Raises:
        DeadlineError: the time ran out before the block ended.
    """
    limits = [limit for limit in (timeout, remaining()) if limit is not None]
    limit = min(limits, default=None)
    token = _deadline.set(None if limit is None else time.monotonic() + limit)
    try:
        async with asyncio.timeout(limit) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise DeadlineError(f"deadline exceeded after {limit:.3g} s; increase it or request less") from None
    finally:
        _deadline.reset(token)


def _utc_now() -> datetime:
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
    deadline: Callable[[], float | None] = call_deadline
    today: Callable[[], datetime] = _utc_now

    def remaining_seconds(self) -> float:
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
