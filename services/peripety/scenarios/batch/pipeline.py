"""Many documents in, their verdicts out, for whoever waits for them in a thread."""

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
    """Check documents, as many at a time as threads and memory allow.

    Verdicts come in any order, each as soon as it is reached. What they say depends on the document and the
    options alone. No more is read while nobody takes verdicts, and closing the iterator ends the work.

    Args:
        documents: each with whatever names it to the caller; read by a thread of their own.
        options: how to check them.
        threads: how many share the work; twice as many as there are cores by default.
        memory: knows verdicts that were reached before, and is left open; one for this batch alone by
            default.

    Yields:
        The name of a document, and the verdict on it.

    Raises:
        Exception: what `documents` raised, after the verdicts on those before it.
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
    """Reads documents in a thread, and has them judged while there is room.

    Attributes:
        taken: how many were read.
        has_ended: whether there are no more.
        error: what ended the reading, if not the end of the documents.
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
        """Begin to read. A source that never ends does not keep the process from ending."""
        threading.Thread(target=self._read, name="batch-intake", daemon=True).start()

    def stop(self) -> None:
        """Read no more than the document that is being read."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def make_room(self, documents: int, size: int) -> None:
        """Let so many more in, in the place of those that are done."""
        with self._changed:
            self._window.leave(documents, size)
            self._changed.notify()

    def _read(self) -> None:
        try:
            # No thread idles while a chunk is filled.
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
        """Wait for room; whether anybody still wants verdicts."""
        with self._changed:
            self._changed.wait_for(lambda: self._window.has_room or self._is_stopped)
            self._window.enter(documents, size)
            self.taken += documents
            return not self._is_stopped
