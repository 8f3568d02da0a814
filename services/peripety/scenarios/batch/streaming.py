"""Many documents in, their verdicts out, beside an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety.gateway.streams import following
from peripety.scenarios.batch.judging import Judging
from peripety.scenarios.batch.memory import memory_for
from peripety.scenarios.batch.window import Window, chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.scenarios.batch.model import BatchOptions, Document, Verdict
    from peripety.scenarios.batch.threads import Threads

__all__ = ["validated"]

T = TypeVar("T")


async def validated(
    documents: AsyncIterator[Sequence[Document[T]]], options: BatchOptions, threads: Threads
) -> AsyncIterator[list[tuple[T, Verdict]]]:
    """Check documents as `validate` does, on threads that other batches may use as well.

    Args:
        documents: some at a time, each with whatever names it to the caller.
        options: how to check them.
        threads: do the work.

    Yields:
        The verdicts that are there, in any order.

    Raises:
        Exception: what `documents` raised, at once.
    """
    memory = memory_for(options)
    outbox: _Outbox[tuple[T, int]] = _Outbox()
    judging: Judging[tuple[T, int]] = Judging(options, threads, memory, outbox.put)
    intake = _Intake(documents, judging)
    reading = asyncio.ensure_future(intake.read())
    reading.add_done_callback(lambda _: outbox.wake())
    given = 0
    try:
        while not (reading.done() and given == intake.taken):
            verdicts = await outbox.take()
            if reading.done():
                reading.result()
            if verdicts:
                given += len(verdicts)
                intake.make_room(len(verdicts), sum(size for (_, size), _ in verdicts))
                yield [(name, verdict) for (name, _), verdict in verdicts]
        # It may have failed while the last verdicts were being taken.
        reading.result()
    finally:
        judging.cancel()
        reading.cancel()
        await asyncio.wait([reading])
        memory.close()


class _Outbox(Generic[T]):
    """What threads have finished, for a task that waits for it."""

    def __init__(self) -> None:
        self._verdicts: deque[tuple[T, Verdict]] = deque()
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()

    def put(self, verdicts: list[tuple[T, Verdict]]) -> None:
        """Have verdicts taken; from any thread."""
        self._verdicts.extend(verdicts)
        self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Have it looked into, even if nothing is there."""
        self._arrived.set()

    async def take(self) -> list[tuple[T, Verdict]]:
        """Wait until there is a reason to look, and take what is there."""
        await self._arrived.wait()
        self._arrived.clear()
        return [self._verdicts.popleft() for _ in range(len(self._verdicts))]


class _Intake(Generic[T]):
    """Reads documents and has them judged while there is room.

    Attributes:
        taken: how many were read.
    """

    def __init__(
        self, documents: AsyncIterator[Sequence[Document[T]]], judging: Judging[tuple[T, int]]
    ) -> None:
        self.taken = 0
        self._documents = documents
        self._judging = judging
        self._window = Window()
        self._changed = asyncio.Event()

    async def read(self) -> None:
        """Read to the end."""
        async with following(self._documents):
            async for some in self._documents:
                for chunk, size in chunks(some):
                    while not self._window.has_room:
                        self._changed.clear()
                        await self._changed.wait()
                    self._window.enter(len(chunk), size)
                    self.taken += len(chunk)
                    self._judging.submit(chunk)

    def make_room(self, documents: int, size: int) -> None:
        """Let so many more in, in the place of those that are done."""
        self._window.leave(documents, size)
        self._changed.set()
