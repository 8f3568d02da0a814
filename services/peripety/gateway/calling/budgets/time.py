"""Time limit of a request, over all its calls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from peripety import context
from peripety.errors import DeadlineError
from peripety.gateway.calling.budgets.refusals import out_of_time
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["within"]

T = TypeVar("T")


async def within(seconds: float, events: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield events until a time limit in seconds.

    Raises:
        ResourceExhaustedError: the time limit is exceeded (code BUDGET_EXHAUSTED).
    """
    end = time.monotonic() + seconds
    async with following(events):
        while True:
            try:
                async with context.bounded(end - time.monotonic()):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            except DeadlineError as error:
                deadline = context.deadline()
                if deadline is not None and deadline <= end:
                    raise
                raise out_of_time(seconds) from error
            yield event
