"""Worker threads for CPU-bound work: checking, compiling and simulating scenarios off the event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

__all__ = ["AbandonedError", "Worker", "Workers", "go_on"]

_THREADS = 2
_caller_gone: ContextVar[threading.Event | None] = ContextVar("caller_gone", default=None)

P = ParamSpec("P")
R = TypeVar("R")


class AbandonedError(Exception):
    """The work was cancelled: its caller has gone."""


def go_on() -> None:
    """Raise an error if the caller of long-running work has gone; call it where the work can stop.

    Raises:
        AbandonedError: the caller has gone; this error reaches no one.
    """
    gone = _caller_gone.get()
    if gone is not None and gone.is_set():
        raise AbandonedError


class Worker(Protocol):
    """Executor of work items; hides when and where they run."""

    @property
    def threads(self) -> int | None:
        """Maximum number of threads that a work item may start; None for the number of cores."""
        ...

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Execute a work item."""
        ...


class Workers:
    """Pool of dedicated threads, so that slow work does not block other work of the process.

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

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Execute a work item in a thread of the pool."""
        gone, context = threading.Event(), copy_context()
        context.run(_caller_gone.set, gone)
        call = partial(context.run, work, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except asyncio.CancelledError:
            gone.set()
            raise

    async def each(self, values: Iterator[R]) -> AsyncGenerator[R]:
        """Yield the items of an iterator, each computed in the pool.

        Other work can run between two items, and a consumer that stops early computes no more items.
        """
        none = object()
        while (value := await self.run(next, values, none)) is not none:
            yield cast("R", value)

    def close(self) -> None:
        """Start nothing more, and do not wait."""
        self._threads.shutdown(wait=False, cancel_futures=True)
