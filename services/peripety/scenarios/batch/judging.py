"""Batch validator: documents to verdicts on several threads, with each distinct document evaluated once."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Generic, TypeVar

from peripety import logs, sim
from peripety.errors import Finding, InternalError, PeripetyError
from peripety.scenarios.batch.model import Verdict, verdict_on
from peripety.scenarios.batch.playing import played
from peripety.scenarios.batch.threads import Turn
from peripety.scenarios.batch.turns import ByHand, Stepped
from peripety.scenarios.checking import problems
from peripety.scenarios.model import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from peripety.scenarios.batch.memory import Memory
    from peripety.scenarios.batch.model import BatchOptions, Document
    from peripety.scenarios.batch.threads import Threads
    from peripety.sim import Checked

__all__ = ["Judging"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Judging(Generic[T]):
    """Validator of documents in any order; an error in one does not affect the others.

    Args:
        options: validation options.
        threads: thread pool.
        memory: verdict cache; looked up first, and filled with new verdicts.
        deliver: callback for verdicts in batches; called on any thread.
    """

    def __init__(
        self,
        options: BatchOptions,
        threads: Threads,
        memory: Memory,
        deliver: Callable[[list[tuple[T, Verdict]]], None],
    ) -> None:
        self._options = options
        self._threads = threads
        self._memory = memory
        self._deliver = deliver
        self._lock = threading.Lock()
        self._waiting: dict[bytes, list[T]] = {}
        self._games: deque[tuple[bytes, Stepped[Verdict]]] = deque()
        self._is_cancelled = False

    def submit(self, documents: Sequence[Document[T]]) -> None:
        """Submit documents; the verdict of each is delivered once under its name.

        They are validated together, so the first verdict waits for all of them. A few dozen are enough.
        """
        self._threads.do(lambda: self._check(documents))

    def cancel(self) -> None:
        """Start no more work. Verdicts of running work may still be delivered."""
        self._is_cancelled = True

    def _check(self, documents: Sequence[Document[T]]) -> None:
        """Validate documents statically, and simulate those that pass."""
        if self._is_cancelled:
            return
        try:
            verdicts, playable = self._static(documents)
            claimed = self._claimed(playable)
        except BaseException as error:  # noqa: BLE001 - nobody waits for this thread, but somebody for verdicts
            if self._is_cancelled:
                return
            verdicts, claimed = [(name, _failed(error)) for name, _ in documents], {}
        if verdicts:
            self._deliver(verdicts)
        if claimed:
            self._begin(claimed)
            self._play()

    def _static(
        self, documents: Sequence[Document[T]]
    ) -> tuple[list[tuple[T, Verdict]], list[tuple[list[T], Checked]]]:
        """Return the verdicts of static validation, and the documents to simulate."""
        names: defaultdict[bytes, list[T]] = defaultdict(list)
        contents: dict[bytes, bytes] = {}
        told = []
        for name, content in documents:
            if isinstance(content, Verdict):
                told.append((name, content))
                continue
            digest = hashlib.sha256(content).digest()
            names[digest].append(name)
            contents[digest] = content
        verdicts = self._memory.find(list(contents))
        fresh = [digest for digest in contents if digest not in verdicts]
        reached, playable = {}, []
        for digest, found in zip(fresh, _checked([contents[digest] for digest in fresh]), strict=True):
            if isinstance(found, Verdict):
                verdicts[digest] = found
            elif found.program is None or self._options.level <= Level.STATIC:
                reached[digest] = self._verdict(contents[digest], found)
            else:
                playable.append((names[digest], found))
        self._memory.keep(reached.items())
        verdicts |= reached
        told += [(name, verdict) for digest, verdict in verdicts.items() for name in names[digest]]
        return told, playable

    def _verdict(self, content: bytes, found: Checked) -> Verdict:
        findings: Sequence[Finding] = found.findings
        if findings and self._options.level is Level.SCHEMA:
            findings = problems(content, Level.SCHEMA)
        return verdict_on(found.spec_hash, findings)

    def _claimed(self, playable: Iterable[tuple[list[T], Checked]]) -> dict[bytes, Checked]:
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

    def _begin(self, claimed: dict[bytes, Checked]) -> None:
        """Queue simulations. A cached verdict at this point was finished before the claim."""
        try:
            known = self._memory.find(list(claimed))
        except Exception as error:  # noqa: BLE001 - they are waited for all the same
            known = dict.fromkeys(claimed, _failed(error))
        self._tell(known.items())
        for key, checked in claimed.items():
            if key not in known:
                worker = ByHand(self._options.allowance)
                self._games.append((key, Stepped(played(checked, self._options, worker))))

    def _play(self) -> None:
        """Run queued simulations for one time slice; unfinished ones return to the end of the queue."""
        if len(self._games) > 1 and self._threads.is_idle:
            self._threads.do(self._play)
        turn = Turn()
        ended = []
        while not (turn.is_over or self._is_cancelled):
            try:
                key, game = self._games.popleft()
            except IndexError:
                break
            verdict = self._play_on(game, turn)
            if verdict is None:
                self._games.append((key, game))
            else:
                ended.append((key, verdict))
        if self._is_cancelled:
            while self._games:
                self._games.popleft()[1].cancel()
            return
        self._finish(ended)
        if self._games:
            self._threads.do(self._play)

    def _play_on(self, game: Stepped[Verdict], turn: Turn) -> Verdict | None:
        """Continue a simulation; return its verdict, or None if the time slice ends first."""
        try:
            while not game.step():
                if turn.is_over or self._is_cancelled:
                    return None
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is of one document alone
            return _failed(error)
        return game.result

    def _finish(self, ended: list[tuple[bytes, Verdict]]) -> None:
        """Store verdicts before delivery, so that a delivered verdict is never computed again."""
        try:
            self._memory.keep([(key, verdict) for key, verdict in ended if verdict.error is None])
        except Exception as error:  # noqa: BLE001 - they are waited for all the same
            if self._is_cancelled:
                return
            ended = [(key, _failed(error)) for key, _ in ended]
        self._tell(ended)

    def _tell(self, verdicts: Iterable[tuple[bytes, Verdict]]) -> None:
        """Deliver verdicts to all documents with the same content."""
        with self._lock:
            told = [(name, verdict) for key, verdict in verdicts for name in self._waiting.pop(key)]
        if told:
            self._deliver(told)


def _checked(contents: Sequence[bytes]) -> Sequence[Checked | Verdict]:
    """Validate documents together; after an error one by one, to isolate it."""
    try:
        return sim.check_all(contents, threads=1)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is of one document alone
        if len(contents) == 1:
            return [_failed(error)]
    return [found for content in contents for found in _checked([content])]


def _failed(error: BaseException) -> Verdict:
    """Return the verdict of a document whose validation failed with an error."""
    if isinstance(error, PeripetyError):
        return Verdict(error=error)
    _log.error("unexpected error in a batch", extra=logs.outline(error))
    return Verdict(error=InternalError(f"The document could not be checked: {type(error).__name__}"))
