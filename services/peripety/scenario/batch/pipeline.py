"""Batch pipeline with back-pressure: documents in, verdicts out, blocking or asynchronous.

It limits the number of pending documents and the size of chunks.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety.core.concurrency import closing
from peripety.scenario.batch.validator import BatchValidator, FairThreadPool
from peripety.scenario.batch.verdicts import create_cache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence

    from peripety.scenario.batch.verdicts import BatchOptions, Document, DocumentVerdict, VerdictCache


# A larger chunk saves nothing, and delays the first verdicts.
_CHUNK_DOCUMENTS = 64
_CHUNK_BYTES = 256 * 1024

_MAX_DOCUMENTS = 1_024
_MAX_BYTES = 8 * 1024 * 1024

# After this time without a verdict, those are delivered whose thread is busy with a long piece of work.
_FLUSH_SECONDS = 0.05


def group_documents(
    documents: Iterable[Document[T]],
    is_wanted: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[list[Document[tuple[T, int]]], int]]:
    """Group documents into chunks for joint validation.

    Args:
        documents: the documents.
        is_wanted: returns True if the current chunk should be submitted early.

    Yields:
        Documents, each with its name and its size in bytes, and the total size.
    """
    chunk: list[Document[tuple[T, int]]] = []
    total = 0
    for name, content in documents:
        size = len(content) if isinstance(content, bytes) else 0
        chunk.append(((name, size), content))
        total += size
        if len(chunk) == _CHUNK_DOCUMENTS or total >= _CHUNK_BYTES or is_wanted():
            yield chunk, total
            chunk, total = [], 0
    if chunk:
        yield chunk, total


class PendingWindow:
    """Counter of pending documents and bytes, which bounds memory.

    The last entry may exceed the limits. It is not thread-safe; callers synchronize.
    """

    def __init__(self) -> None:
        self._documents = 0
        self._bytes = 0

    @property
    def has_room(self) -> bool:
        """Return True if another document may enter."""
        return self._documents < _MAX_DOCUMENTS and self._bytes < _MAX_BYTES

    def enter(self, documents: int, size: int) -> None:
        """Count entering documents and bytes."""
        self._documents += documents
        self._bytes += size

    def leave(self, documents: int, size: int) -> None:
        """Release documents and bytes."""
        self.enter(-documents, -size)


T = TypeVar("T")


def validate(
    documents: Iterable[Document[T]],
    options: BatchOptions,
    *,
    threads: int | None = None,
    cache: VerdictCache | None = None,
) -> Generator[tuple[T, DocumentVerdict], None, None]:
    """Validate documents, as many at a time as threads and memory allow.

    Verdicts arrive in any order, each as soon as it is available. They depend only on the document and the
    options. If the consumer does not read verdicts, no more documents are read. Closing the iterator cancels
    the work.

    Args:
        documents: each with a name chosen by the caller; read on a separate thread.
        options: validation options.
        threads: the number of threads; twice the number of cores by default.
        cache: verdict cache, which is left open; one for this batch alone by default.

    Yields:
        The name of a document, and its verdict.

    Raises:
        Exception: any error of `documents`, after the verdicts of the earlier ones.
    """
    with ExitStack() as stack:
        if cache is None:
            cache = create_cache(options)
            stack.callback(cache.close)
        pool = stack.enter_context(FairThreadPool(threads))
        finished: SimpleQueue[list[tuple[tuple[T, int], DocumentVerdict]]] = SimpleQueue()
        judging: BatchValidator[tuple[T, int]] = BatchValidator(options, pool, cache, finished.put)
        stack.callback(judging.cancel)
        intake = _ReaderThread(documents, judging, pool, at_end=lambda: finished.put([]))
        stack.callback(intake.stop)
        intake.start()
        given = 0
        while not (intake.has_ended and given == intake.document_count):
            try:
                verdicts = finished.get(timeout=_FLUSH_SECONDS)
            except Empty:
                judging.flush()
                continue
            given += len(verdicts)
            intake.release(len(verdicts), sum(size for (_, size), _ in verdicts))
            for (name, _), verdict in verdicts:
                yield name, verdict
        if intake.error is not None:
            raise intake.error


class _ReaderThread(Generic[T]):
    """Reader thread that submits documents within the limits of a window, and counts them.

    Attributes:
        has_ended: True at the end of the documents.
        error: the error that ended the reading, if any.
    """

    def __init__(
        self,
        documents: Iterable[Document[T]],
        validator: BatchValidator[tuple[T, int]],
        threads: FairThreadPool,
        at_end: Callable[[], None],
    ) -> None:
        self.document_count = 0
        self.has_ended = False
        self.error: Exception | None = None
        self._documents = documents
        self._validator = validator
        self._threads = threads
        self._at_end = at_end
        self._window = PendingWindow()
        self._changed = threading.Condition()
        self._is_stopped = False

    def start(self) -> None:
        """Start the reader as a daemon thread; an endless source does not block the exit of the process."""
        threading.Thread(target=self._read, name="batch-intake", daemon=True).start()

    def stop(self) -> None:
        """Stop reading after the current document."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def release(self, documents: int, size: int) -> None:
        """Release the window capacity of finished documents."""
        with self._changed:
            self._window.leave(documents, size)
            self._changed.notify()

    def _read(self) -> None:
        try:
            # Submit early if a thread is idle.
            for chunk, size in group_documents(self._documents, lambda: self._threads.is_idle):
                if not self._acquire(len(chunk), size):
                    return
                self._validator.submit(chunk)
        except Exception as error:  # noqa: BLE001 - raised where the verdicts are taken
            self.error = error
        finally:
            self.has_ended = True
            self._at_end()

    def _acquire(self, documents: int, size: int) -> bool:
        """Wait for capacity; return False after a stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._window.has_room or self._is_stopped)
            self._window.enter(documents, size)
            self.document_count += documents
            return not self._is_stopped


async def validate_stream(
    documents: AsyncIterator[Sequence[Document[T]]],
    options: BatchOptions,
    threads: FairThreadPool,
) -> AsyncIterator[list[tuple[T, DocumentVerdict]]]:
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
    memory = create_cache(options)
    outbox: _VerdictQueue[tuple[T, int]] = _VerdictQueue()
    judging: BatchValidator[tuple[T, int]] = BatchValidator(options, threads, memory, outbox.put)
    intake = _ReaderTask(documents, judging)
    reading = asyncio.ensure_future(intake.read())
    reading.add_done_callback(lambda _: outbox.wake())
    given = 0
    try:
        while not (reading.done() and given == intake.document_count):
            verdicts = await outbox.take(_FLUSH_SECONDS)
            if not verdicts:
                judging.flush()
            if reading.done():
                reading.result()
            if verdicts:
                given += len(verdicts)
                intake.release(len(verdicts), sum(size for (_, size), _ in verdicts))
                yield [(name, verdict) for (name, _), verdict in verdicts]
        # The reader may have failed while the last verdicts were delivered.
        reading.result()
    finally:
        judging.cancel()
        reading.cancel()
        await asyncio.wait([reading])
        memory.close()


class _VerdictQueue(Generic[T]):
    """Queue of verdicts from threads to a task."""

    def __init__(self) -> None:
        self._verdicts: deque[tuple[T, DocumentVerdict]] = deque()
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()

    def put(self, verdicts: list[tuple[T, DocumentVerdict]]) -> None:
        """Add verdicts; thread-safe."""
        self._verdicts.extend(verdicts)
        self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Wake the consumer, even without verdicts."""
        self._arrived.set()

    async def take(self, seconds: float) -> list[tuple[T, DocumentVerdict]]:
        """Wait for a wake-up, at most some seconds, and return the available verdicts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        self._arrived.clear()
        return [self._verdicts.popleft() for _ in range(len(self._verdicts))]


class _ReaderTask(Generic[T]):
    """Reader task that submits documents within the limits of a window, and counts them."""

    def __init__(
        self,
        documents: AsyncIterator[Sequence[Document[T]]],
        validator: BatchValidator[tuple[T, int]],
    ) -> None:
        self.document_count = 0
        self._documents = documents
        self._validator = validator
        self._window = PendingWindow()
        self._changed = asyncio.Event()

    async def read(self) -> None:
        """Read all documents."""
        async with closing(self._documents):
            async for some in self._documents:
                for chunk, size in group_documents(some):
                    while not self._window.has_room:
                        self._changed.clear()
                        await self._changed.wait()
                    self._window.enter(len(chunk), size)
                    self.document_count += len(chunk)
                    self._validator.submit(chunk)

    def release(self, documents: int, size: int) -> None:
        """Release the window capacity of finished documents."""
        self._window.leave(documents, size)
        self._changed.set()
