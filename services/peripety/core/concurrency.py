"""Concurrency helpers: worker threads, shielded tasks, and streams that are closed at the end of a block.

Checking, compiling and simulating scenarios are CPU-bound, so they run in worker threads and not on the
event loop. A shielded task finishes in spite of a cancellation.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from peripety.core import call_context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


T = TypeVar("T")


@asynccontextmanager
async def closing(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close `events` when the block ends, so that the call behind it ends at once.

    Unlike `contextlib.aclosing`, it accepts iterators that are not generators.
    """
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set, for at most so many seconds; return False if it is not set by then."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


# Smaller work takes less time than the hop to a thread and back on a busy event loop.
_INLINE_BYTES = 32 * 1024


async def run_in_thread_if_large(work: Callable[[], T], size: int) -> T:
    """Run work in a thread if it is large, else inline.

    Args:
        work: the work.
        size: number of bytes it processes.
    """
    return work() if size <= _INLINE_BYTES else await asyncio.to_thread(work)


async def shield_until_done(work: Awaitable[T]) -> T:
    """Wait until `work` ends even if this task is cancelled meanwhile, then raise the cancellation."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved
        raise


_THREADS = 2
_cancelled: ContextVar[threading.Event | None] = ContextVar("caller_gone", default=None)

P = ParamSpec("P")
R = TypeVar("R")


class WorkCancelledError(Exception):
    """The work was cancelled: its caller has gone."""


def raise_if_cancelled() -> None:
    """Raise an error if the caller of long-running work has gone; call it where the work can stop.

    Raises:
        WorkCancelledError: the caller is gone; the error is not reported.
    """
    gone = _cancelled.get()
    if gone is not None and gone.is_set():
        raise WorkCancelledError


class WorkerPool:
    """Executor with dedicated threads, so that slow work does not block other work of the process.

    A thread cannot be stopped. If the caller of a work item has gone, a queued item is not started. A running
    item continues to its end or to its next cancellation check .

    Args:
        name: prefix of the thread names.

    Attributes:
        threads: None, as an item may use every core.
    """

    threads: int | None = None

    def __init__(self, name: str = "scenarios") -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=name)

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline of the caller; None without one."""
        return call_context.remaining()

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Execute a work item in a thread of the pool."""
        gone, context = threading.Event(), copy_context()
        context.run(_cancelled.set, gone)
        call = partial(context.run, work, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except asyncio.CancelledError:
            gone.set()
            raise

    async def iterate(self, values: Iterator[R]) -> AsyncGenerator[R]:
        """Yield the items of an iterator, each computed in the pool.

        Other work can run between two items, and a consumer that stops early computes no more items.
        """
        none = object()
        while (value := await self.run(next, values, none)) is not none:
            yield cast("R", value)

    def close(self) -> None:
        """Start nothing more, and do not wait."""
        self._threads.shutdown(wait=False, cancel_futures=True)
