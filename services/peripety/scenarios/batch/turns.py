"""Work that is done by hand, a step at a time: what waits for nothing needs no event loop.

The gate and certificates are written for a loop that goes on while others do their pieces. Here they are
stepped through instead, in the thread that steps: before each piece but the first they pause, so that whoever
steps may turn to something else, and the time that the pieces take is counted.
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
    """A `Worker` that does each piece itself, at once, until its time is used up.

    Args:
        seconds: most time that all pieces together may take; the one that goes beyond it is done to its end.

    Attributes:
        threads: a piece has the thread that it is done in.
    """

    threads: int | None = 1

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._has_begun = False

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a piece of work.

        Raises:
            ResourceExhaustedError: the pieces before it took all the time.
        """
        if self._has_begun:
            await _Pause()
        self._has_begun = True
        if self._left <= 0:
            raise ResourceExhaustedError(
                "The dry-run takes longer than a document of a batch may: ask for fewer runs or a shorter"
                " horizon, or make the rules cheaper",
                code="DRY_RUN_TOO_SLOW",
            )
        started = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self._left -= time.perf_counter() - started


class Stepped(Generic[R]):
    """Work of a `ByHand`, from pause to pause.

    Attributes:
        result: what came of it, once it has ended.
    """

    result: R

    def __init__(self, work: Coroutine[None, None, R]) -> None:
        self._work = work

    def step(self) -> bool:
        """Go on to the next pause; whether that was the end. It raises what the work raises."""
        try:
            self._work.send(None)
        except StopIteration as end:
            self.result = end.value
            return True
        return False

    def cancel(self) -> None:
        """Leave it unfinished."""
        # As a loop would: before Python 3.13 `close` does not reach into generators that the work waits for.
        with suppress(CancelledError):
            self._work.throw(CancelledError())
