"""Who does the checking, compiling and simulating of scenarios: threads, beside an event loop."""

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
    """Nobody waits for a piece of work any more."""


def go_on() -> None:
    """Say, in a piece of work that may take minutes, that it could end here.

    Raises:
        AbandonedError: whoever asked for it has gone; nobody sees this error.
    """
    gone = _caller_gone.get()
    if gone is not None and gone.is_set():
        raise AbandonedError


class Worker(Protocol):
    """Somebody who does pieces of work, so that whoever asks need not know when and where."""

    @property
    def threads(self) -> int | None:
        """How many threads a piece may start itself; None for as many as there are cores."""
        ...

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a piece of work."""
        ...


class Workers:
    """A few threads of their own, so that rules that take long to work out hold up nobody else.

    A thread cannot be stopped: work whose caller has gone is not begun when it still waits, and else goes on
    to its end, or to where it asks whether it should (`go_on`).

    Args:
        name: what the threads are called.

    Attributes:
        threads: a piece may use every core.
    """

    threads: int | None = None

    def __init__(self, name: str = "scenarios") -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=name)

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a piece of work beside the event loop."""
        gone, context = threading.Event(), copy_context()
        context.run(_caller_gone.set, gone)
        call = partial(context.run, work, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except asyncio.CancelledError:
            gone.set()
            raise

    async def each(self, values: Iterator[R]) -> AsyncGenerator[R]:
        """What an iterator yields, each made beside the event loop.

        Between two of them others get their turn, and who leaves early has no more made.
        """
        none = object()
        while (value := await self.run(next, values, none)) is not none:
            yield cast("R", value)

    def close(self) -> None:
        """Begin nothing more, and wait for nothing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
