"""Fair thread pool: long work is divided into time slices."""

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
    """Time slice of a piece of work."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + _TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Return True if the time slice is used up."""
        return time.perf_counter() > self._end


class Threads:
    """Fair thread pool, shared by any number of batches. Long work resubmits itself for another slice.

    Args:
        number: the number of threads; twice the number of cores by default, because up to half of the work of
            a document is in Python, which runs on one thread at a time.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number or 2 * (os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._number, thread_name_prefix="batch")
        self._lock = threading.Lock()
        self._under_way = 0

    @property
    def is_idle(self) -> bool:
        """Return True if a thread is idle."""
        return self._under_way < self._number

    def do(self, work: Callable[[], None]) -> None:
        """Queue a function; run it immediately if the pool is closed."""
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
        """Accept no more work; the threads end after the queued work."""
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
