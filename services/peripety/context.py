"""Call context: deadline and request id of the current call.

The server sets both at the start of a call, the client passes both to the next service, and domain code may
read them. They are context variables, so tasks started inside the call inherit them. The module is
independent of the transport.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from peripety.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["bounded", "deadline", "enter_call", "remaining", "request_id"]

_deadline: ContextVar[float | None] = ContextVar("peripety_deadline", default=None)
_request_id: ContextVar[str | None] = ContextVar("peripety_request_id", default=None)


def deadline() -> float | None:
    """Return the deadline of the call on the monotonic clock, or None if it has none."""
    return _deadline.get()


def remaining() -> float | None:
    """Return the seconds until the deadline, never negative, or None without a deadline."""
    moment = _deadline.get()
    return None if moment is None else max(0.0, moment - time.monotonic())


def request_id() -> str | None:
    """Return the request id of the current call, or None outside a call."""
    return _request_id.get()


def enter_call(*, request_id: str | None, timeout: float | None) -> None:
    """Start a call in the current context, which applies to the rest of this task and the tasks it starts.

    Args:
        request_id: id of the call.
        timeout: seconds that the caller is willing to wait; None for no limit.
    """
    _request_id.set(request_id)
    _deadline.set(None if timeout is None else time.monotonic() + timeout)


@asynccontextmanager
async def bounded(timeout: float | None) -> AsyncIterator[None]:  # noqa: ASYNC109 - it is made of asyncio.timeout
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
