"""Blocking batch pipeline: documents in, verdicts out, with back-pressure."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety.scenarios.batch.judging import Judging
from peripety.scenarios.batch.memory import memory_for
from peripety.scenarios.batch.threads import Threads
from peripety.scenarios.batch.window import Window, chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from peripety.scenarios.batch.memory import Memory
    from peripety.scenarios.batch.model import BatchOptions, Document, Verdict

__all__ = ["validate"]

T = TypeVar("T")


def validate(
    documents: Iterable[Document[T]],
    options: BatchOptions,
    *,
    threads: int | None = None,
    memory: Memory | None = None,
) -> Generator[tuple[T, Verdict], None, None]:
    """Validate documents, as many at a time as threads and memory allow.

    Verdicts arrive in any order, each as soon as it is available. They depend only on the document and the
    options. If the consumer does not read verdicts, no more documents are read. Closing the iterator cancels
    the work.

    Args:
        documents: each with a name chosen by the caller; read on a separate thread.
        options: validation options.
        threads: the number of threads; twice the number of cores by default.
        memory: verdict cache, which is left open; one for this batch alone by default.

    Yields:
        The name of a document, and its verdict.

    Raises:
        Exception: any error of `documents`, after the verdicts of the earlier ones.
    """
    with ExitStack() as stack:
        if memory is None:
            memory = memory_for(options)
            stack.callback(memory.close)
        pool = stack.enter_context(Threads(threads))
        finished: SimpleQueue[list[tuple[tuple[T, int], Verdict]]] = SimpleQueue()
        judging: Judging[tuple[T, int]] = Judging(options, pool, memory, finished.put)
        stack.callback(judging.cancel)
        intake = _Intake(documents, judging, pool, at_end=lambda: finished.put([]))
        stack.callback(intake.stop)
        intake.start()
        given = 0
        while not (intake.has_ended and given == intake.taken):
            verdicts = finished.get()
            given += len(verdicts)
            intake.make_room(len(verdicts), sum(size for (_, size), _ in verdicts))
            for (name, _), verdict in verdicts:
                yield name, verdict
        if intake.error is not None:
            raise intake.error


class _Intake(Generic[T]):
    """Reader thread that submits documents within the limits of a window, and counts them.

    Attributes:
        has_ended: True at the end of the documents.
        error: the error that ended the reading, if any.
    """

    def __init__(
        self,
        documents: Iterable[Document[T]],
        judging: Judging[tuple[T, int]],
        threads: Threads,
        at_end: Callable[[], None],
    ) -> None:
        self.taken = 0
        self.has_ended = False
        self.error: Exception | None = None
        self._documents = documents
        self._judging = judging
        self._threads = threads
        self._at_end = at_end
        self._window = Window()
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

    def make_room(self, documents: int, size: int) -> None:
        """Release the window capacity of finished documents."""
        with self._changed:
            self._window.leave(documents, size)
            self._changed.notify()

    def _read(self) -> None:
        try:
            # Submit early if a thread is idle.
            for chunk, size in chunks(self._documents, lambda: self._threads.is_idle):
                if not self._enter(len(chunk), size):
                    return
                self._judging.submit(chunk)
        except Exception as error:  # noqa: BLE001 - raised where the verdicts are taken
            self.error = error
        finally:
            self.has_ended = True
            self._at_end()

    def _enter(self, documents: int, size: int) -> bool:
        """Wait for capacity; return False after a stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._window.has_room or self._is_stopped)
            self._window.enter(documents, size)
            self.taken += documents
            return not self._is_stopped
