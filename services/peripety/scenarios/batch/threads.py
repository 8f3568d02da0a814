"""Threads that share work out in turns."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Threads", "Turn"]

_TURN_SECONDS = 0.05


class Turn:
    """The time that a piece of work has before others get theirs."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + _TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether others should go on now."""
        return time.perf_counter() > self._end


class Threads:
    """A fixed number of threads, for any number of batches. Work that takes long comes back for another turn.

    Args:
        number: how many; twice as many as there are cores by default, since up to half of what a document
            takes is done in Python, by one thread at a time.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number or 2 * (os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._number, thread_name_prefix="batch")
        self._lock = threading.Lock()
        self._under_way = 0

    @property
    def is_idle(self) -> bool:
        """Whether a thread has nothing to do."""
        return self._under_way < self._number

    def do(self, work: Callable[[], None]) -> None:
        """Have something done, after all that waits already; at once when they are closed."""
        with self._lock:
            self._under_way += 1
        try:
            self._pool.submit(self._done, work)
        except RuntimeError:
            self._done(work)

    def _done(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._under_way -= 1

    def close(self) -> None:
        """Take nothing more; what waits has its turn, and then the threads end."""
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
