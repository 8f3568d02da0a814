"""Batch validator: documents to verdicts on several threads, with each distinct document evaluated once.

A valid document is evaluated in this order: proofs, the difficulty gate, a certificate. The fair thread
pool divides long work into time slices.

The gate and certificates are coroutines that await pieces of work. `InlineExecutor` runs each piece inline,
without an event loop, and pauses before every piece but the first. So the caller can switch to other work
between pieces, and their time is measured.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from asyncio import CancelledError
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from peripety import engine
from peripety.certification.certificate import build_certificate
from peripety.certification.difficulty_gate import evaluate_to_verdict
from peripety.certification.types import encode
from peripety.core import logging_setup
from peripety.engine.executor import InlineExecutor
from peripety.errors import Finding, InternalError, PeripetyError, filter_errors
from peripety.scenario.batch.verdicts import DocumentVerdict, build_verdict
from peripety.scenario.types import ValidationLevel
from peripety.scenario.validation import collect_proof_findings, validate_document

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence
    from types import TracebackType

    from peripety.engine import ValidationResult
    from peripety.engine.executor import Executor
    from peripety.scenario.batch.verdicts import BatchOptions, Document, VerdictCache


async def evaluate_compiled(
    checked: ValidationResult,
    options: BatchOptions,
    worker: Executor,
) -> DocumentVerdict:
    """Evaluate a compiled document, from `Level.DRY_RUN` on.

    Raises:
        ResourceExhaustedError: the evaluation exceeds the time limit.
    """
    program = checked.program
    if program is None:
        raise InternalError("A document with errors was to be played")
    findings = [*checked.findings, *await worker.run(collect_proof_findings, program)]
    if filter_errors(findings):
        return build_verdict(checked.spec_hash, findings)
    gate = await evaluate_to_verdict(program, options.dry_run, worker)
    findings += gate.findings
    if filter_errors(findings) or options.level < ValidationLevel.CERTIFICATE:
        return build_verdict(checked.spec_hash, findings, gate.report)
    certificate = await build_certificate(program, options.certificate, worker)
    findings += [finding for finding in certificate.findings if finding not in findings]
    return build_verdict(checked.spec_hash, findings, gate.report, encode(certificate))


_SLICE_SECONDS = 0.05


class TimeSlice:
    """Time slice of a piece of work."""

    def __init__(self) -> None:
        self._end = time.perf_counter() + _SLICE_SECONDS

    @property
    def is_used_up(self) -> bool:
        """Return True if the time slice is used up."""
        return time.perf_counter() > self._end


class FairThreadPool:
    """Fair thread pool, shared by any number of batches. Long work resubmits itself for another slice.

    Args:
        number: the number of threads; twice the number of cores by default, because up to half of the work of
            a document is in Python, which runs on one thread at a time.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number or 2 * (os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._number, thread_name_prefix="batch")
        self._lock = threading.Lock()
        self._pending = 0

    @property
    def is_idle(self) -> bool:
        """Return True if a thread is idle."""
        return self._pending < self._number

    def submit(self, work: Callable[[], None]) -> None:
        """Queue a function; run it immediately if the pool is closed."""
        with self._lock:
            self._pending += 1
        try:
            self._pool.submit(self._run_work, work)
        except RuntimeError:
            self._run_work(work)

    def _run_work(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._pending -= 1

    def close(self) -> None:
        """Accept no more work; the threads end after the queued work."""
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


R = TypeVar("R")


class SteppableTask(Generic[R]):
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


_log = logging.getLogger(__name__)

T = TypeVar("T")


class BatchValidator(Generic[T]):
    """Validator of documents in any order; an error in one does not affect the others.

    Args:
        options: validation options.
        threads: thread pool.
        cache: verdict cache; looked up first, and filled with new verdicts.
        deliver: callback for verdicts in batches; called on any thread.
    """

    def __init__(
        self,
        options: BatchOptions,
        threads: FairThreadPool,
        cache: VerdictCache,
        deliver: Callable[[list[tuple[T, DocumentVerdict]]], None],
    ) -> None:
        self._options = options
        self._threads = threads
        self._cache = cache
        self._deliver = deliver
        self._lock = threading.Lock()
        self._waiting: dict[bytes, list[T]] = {}
        self._simulations: deque[tuple[bytes, SteppableTask[DocumentVerdict]]] = deque()
        self._ended: list[tuple[bytes, DocumentVerdict]] = []
        self._is_cancelled = False

    def submit(self, documents: Sequence[Document[T]]) -> None:
        """Submit documents; the verdict of each is delivered once under its name.

        They are validated together, so the first verdict waits for all of them. A few dozen are enough.
        """
        self._threads.submit(lambda: self._check(documents))

    def cancel(self) -> None:
        """Start no more work. Verdicts of running work may still be delivered."""
        self._is_cancelled = True

    def flush(self) -> None:
        """Deliver finished verdicts now. Otherwise their thread does so at the end of its time slice."""
        with self._lock:
            ended, self._ended = self._ended, []
        if ended:
            self._store_and_deliver(ended)

    def _check(self, documents: Sequence[Document[T]]) -> None:
        """Validate documents statically, and simulate those that pass."""
        if self._is_cancelled:
            return
        try:
            verdicts, playable = self._validate_statically(documents)
            claimed = self._claim(playable)
        except BaseException as error:  # noqa: BLE001 - nobody waits for this thread, but somebody for verdicts
            if self._is_cancelled:
                return
            verdicts, claimed = [(name, _error_verdict(error)) for name, _ in documents], {}
        if verdicts:
            self._deliver(verdicts)
        if claimed:
            self._enqueue(claimed)
            self._run_slice()

    def _validate_statically(
        self,
        documents: Sequence[Document[T]],
    ) -> tuple[list[tuple[T, DocumentVerdict]], list[tuple[list[T], ValidationResult]]]:
        """Return the verdicts of static validation, and the documents to simulate."""
        names: defaultdict[bytes, list[T]] = defaultdict(list)
        contents: dict[bytes, bytes] = {}
        told = []
        for name, content in documents:
            if isinstance(content, DocumentVerdict):
                told.append((name, content))
                continue
            digest = hashlib.sha256(content).digest()
            names[digest].append(name)
            contents[digest] = content
        verdicts = self._cache.get_many(list(contents))
        fresh = [digest for digest in contents if digest not in verdicts]
        reached, playable = {}, []
        for digest, found in zip(
            fresh,
            _validate_together([contents[digest] for digest in fresh]),
            strict=True,
        ):
            if isinstance(found, DocumentVerdict):
                verdicts[digest] = found
            elif found.program is None or self._options.level <= ValidationLevel.STATIC:
                reached[digest] = self._static_verdict(contents[digest], found)
            else:
                playable.append((names[digest], found))
        self._cache.put_many(reached.items())
        verdicts |= reached
        told += [(name, verdict) for digest, verdict in verdicts.items() for name in names[digest]]
        return told, playable

    def _static_verdict(self, content: bytes, found: ValidationResult) -> DocumentVerdict:
        findings: Sequence[Finding] = found.findings
        if findings and self._options.level is ValidationLevel.SCHEMA:
            findings = validate_document(content, ValidationLevel.SCHEMA)
        return build_verdict(found.spec_hash, findings)

    def _claim(self, playable: Iterable[tuple[list[T], ValidationResult]]) -> dict[bytes, ValidationResult]:
        """Return the documents without a running simulation, by content hash; the others join one."""
        claimed = {}
        with self._lock:
            for names, checked in playable:
                key = bytes.fromhex(checked.spec_hash)
                if key in self._waiting:
                    self._waiting[key] += names
                else:
                    self._waiting[key] = list(names)
                    claimed[key] = checked
        return claimed

    def _enqueue(self, claimed: dict[bytes, ValidationResult]) -> None:
        """Queue simulations. A cached verdict at this point was finished before the claim."""
        try:
            known = self._cache.get_many(list(claimed))
        except Exception as error:  # noqa: BLE001 - they are waited for all the same
            known = dict.fromkeys(claimed, _error_verdict(error))
        self._deliver_to_all(known.items())
        for key, checked in claimed.items():
            if key not in known:
                worker = InlineExecutor(self._options.time_limit)
                self._simulations.append(
                    (key, SteppableTask(evaluate_compiled(checked, self._options, worker))),
                )

    def _run_slice(self) -> None:
        """Run queued simulations for one time slice; unfinished ones return to the end of the queue."""
        if len(self._simulations) > 1 and self._threads.is_idle:
            self._threads.submit(self._run_slice)
        turn = TimeSlice()
        while not (turn.is_used_up or self._is_cancelled):
            try:
                key, game = self._simulations.popleft()
            except IndexError:
                break
            verdict = self._continue_simulation(game, turn)
            if verdict is None:
                self._simulations.append((key, game))
            else:
                with self._lock:
                    self._ended.append((key, verdict))
        if self._is_cancelled:
            while self._simulations:
                self._simulations.popleft()[1].cancel()
            return
        self.flush()
        if self._simulations:
            self._threads.submit(self._run_slice)

    def _continue_simulation(
        self,
        simulation: SteppableTask[DocumentVerdict],
        time_slice: TimeSlice,
    ) -> DocumentVerdict | None:
        """Continue a simulation; return its verdict, or None if the time slice ends first."""
        try:
            while not simulation.step():
                if time_slice.is_used_up or self._is_cancelled:
                    return None
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is of one document alone
            return _error_verdict(error)
        return simulation.result

    def _store_and_deliver(self, ended: list[tuple[bytes, DocumentVerdict]]) -> None:
        """Store verdicts before delivery, so that a delivered verdict is never computed again."""
        try:
            self._cache.put_many([(key, verdict) for key, verdict in ended if verdict.error is None])
        except Exception as error:  # noqa: BLE001 - they are waited for all the same
            if self._is_cancelled:
                return
            ended = [(key, _error_verdict(error)) for key, _ in ended]
        self._deliver_to_all(ended)

    def _deliver_to_all(self, verdicts: Iterable[tuple[bytes, DocumentVerdict]]) -> None:
        """Deliver verdicts to all documents with the same content."""
        with self._lock:
            told = [(name, verdict) for key, verdict in verdicts for name in self._waiting.pop(key)]
        if told:
            self._deliver(told)


def _validate_together(contents: Sequence[bytes]) -> Sequence[ValidationResult | DocumentVerdict]:
    """Validate documents together; after an error one by one, to isolate it."""
    try:
        return engine.validate_many(contents, threads=1)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is of one document alone
        if len(contents) == 1:
            return [_error_verdict(error)]
    return [found for content in contents for found in _validate_together([content])]


def _error_verdict(error: BaseException) -> DocumentVerdict:
    """Return the verdict of a document whose validation failed with an error."""
    if isinstance(error, PeripetyError):
        return DocumentVerdict(error=error)
    _log.error("unexpected error in a batch", extra=logging_setup.describe_error(error))
    return DocumentVerdict(error=InternalError(f"The document could not be checked: {type(error).__name__}"))
