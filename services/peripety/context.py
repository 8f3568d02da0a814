"""What travels with a call: its deadline and its request id.

The server sets both at the start of a call, the client carries both to the next service, and domain code may
ask. They live in context variables, so a task started inside the call inherits them. Nothing here knows the
transport.
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
    """The moment on the monotonic clock at which the caller stops waiting; None when nobody said."""
    return _deadline.get()


def remaining() -> float | None:
    """Seconds until the deadline, never negative; None when there is no deadline."""
    moment = _deadline.get()
    return None if moment is None else max(0.0, moment - time.monotonic())


def request_id() -> str | None:
    """The id to quote when asking about this call; None outside a call."""
    return _request_id.get()


def enter_call(*, request_id: str | None, timeout: float | None) -> None:
    """Start a call in the current context: the rest of this task, and the tasks it starts, belong to it.

    Args:
        request_id: the id of the call.
        timeout: seconds the caller is willing to wait; None for no limit.
    """
    _request_id.set(request_id)
    _deadline.set(None if timeout is None else time.monotonic() + timeout)


@asynccontextmanager
async def bounded(timeout: float | None) -> AsyncIterator[None]:  # noqa: ASYNC109 - it is made of asyncio.timeout
    """Give the block at most `timeout` seconds, and never more than the call has left.

    What runs inside sees the shorter deadline.

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
        raise DeadlineError(f"The time ran out after {limit:.3g} s; allow more, or ask for less") from None
    finally:
        _deadline.reset(token)
