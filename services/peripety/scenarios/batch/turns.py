"""Stepwise execution of coroutines without an event loop, in the calling thread.

The gate and certificates are coroutines that await pieces of work. This executor runs each piece inline and
pauses before every piece but the first. So the caller can switch to other work between pieces, and their time
is measured.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from peripety.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["ByHand", "Stepped"]

P = ParamSpec("P")
R = TypeVar("R")


class _Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


class ByHand:
    """Worker that runs each piece inline, until its time limit.

    Args:
        seconds: the maximum time of all pieces; the piece that exceeds it runs to its end.

    Attributes:
        threads: always 1, the calling thread.
    """

    threads: int | None = 1

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._has_begun = False

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a piece of work.

        Raises:
            ResourceExhaustedError: earlier pieces used all the time.
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


class Stepped(Generic[R]):
    """Steppable coroutine, from pause to pause.

    Attributes:
        result: its result, after the last step.
    """

    result: R

    def __init__(self, work: Coroutine[None, None, R]) -> None:
        self._work = work

    def step(self) -> bool:
        """Run to the next pause; return True at the end. Errors of the coroutine are raised."""
        try:
            self._work.send(None)
        except StopIteration as end:
            self.result = end.value
            return True
        return False

    def cancel(self) -> None:
        """Cancel the coroutine."""
        # Before Python 3.13, `close` does not reach generators that the coroutine awaits, so the error is
        # thrown into it.
        with suppress(CancelledError):
            self._work.throw(CancelledError())
