"""Executors: where pieces of CPU-bound work run, such as simulations, and how they share a time limit."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from peripety.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

P = ParamSpec("P")
R = TypeVar("R")


class Executor(Protocol):
    """Executor of work items; hides when and where they run."""

    @property
    def threads(self) -> int | None:
        """Maximum number of threads that a work item may start; None for the number of cores."""
        ...

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline of the caller; None without one."""
        ...

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Execute a work item."""
        ...


class _Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


class InlineExecutor:
    """Executor that runs each work item inline, until its time limit, with a pause before each but the first.

    Args:
        seconds: the maximum time of all items; the item that exceeds it runs to its end.

    Attributes:
        threads: always 1, the calling thread.
    """

    threads: int | None = 1

    def __init__(self, seconds: float = math.inf) -> None:
        self._left = seconds
        self._has_begun = False

    def remaining_seconds(self) -> None:
        """Return None: only work counts towards the time limit, and `run` applies it."""

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Execute a work item.

        Raises:
            ResourceExhaustedError: earlier items used all the time.
        """
        if self._has_begun:
            await _Pause()
        self._has_begun = True
        if self._left <= 0:
            raise ResourceExhaustedError(
                "The dry-run exceeds the time limit of a document in a batch: use fewer runs or a shorter"
                " horizon, or make the rules cheaper",
                code="DRY_RUN_TOO_SLOW",
            )
        started = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self._left -= time.perf_counter() - started
