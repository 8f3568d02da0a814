"""Asynchronous batch pipeline: documents in, verdicts out, with back-pressure."""

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
    """Validate documents like `validate`, on a shared thread pool.

    Args:
        documents: batches of documents, each with a name chosen by the caller.
        options: validation options.
        threads: thread pool.

    Yields:
        The available verdicts, in any order.

    Raises:
        Exception: any error of `documents`, immediately.
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
        # The reader may have failed while the last verdicts were delivered.
        reading.result()
    finally:
        judging.cancel()
        reading.cancel()
        await asyncio.wait([reading])
        memory.close()


class _Outbox(Generic[T]):
    """Queue of verdicts from threads to a task."""

    def __init__(self) -> None:
        self._verdicts: deque[tuple[T, Verdict]] = deque()
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()

    def put(self, verdicts: list[tuple[T, Verdict]]) -> None:
        """Add verdicts; thread-safe."""
        self._verdicts.extend(verdicts)
        self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Wake the consumer, even without verdicts."""
        self._arrived.set()

    async def take(self) -> list[tuple[T, Verdict]]:
        """Wait for a wake-up, and return the available verdicts."""
        await self._arrived.wait()
        self._arrived.clear()
        return [self._verdicts.popleft() for _ in range(len(self._verdicts))]


class _Intake(Generic[T]):
    """Reader task that submits documents within the limits of a window, and counts them."""

    def __init__(
        self, documents: AsyncIterator[Sequence[Document[T]]], judging: Judging[tuple[T, int]]
    ) -> None:
        self.taken = 0
        self._documents = documents
        self._judging = judging
        self._window = Window()
        self._changed = asyncio.Event()

    async def read(self) -> None:
        """Read all documents."""
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
        """Release the window capacity of finished documents."""
        self._window.leave(documents, size)
        self._changed.set()
