"""From documents to verdicts, on several threads: each document once, however often it comes."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import defaultdict
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
    from peripety.scenarios.workers import Worker
    from peripety.sim import Checked

__all__ = ["Judging"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Judging(Generic[T]):
    """Judges documents in any order; what goes wrong with one is no matter of the others.

    Args:
        options: how to check each.
        threads: do the work.
        memory: knows verdicts that were reached before, and keeps those that are reached.
        deliver: is given the verdicts, some at a time, by whichever thread reached them.
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
        self._is_cancelled = False

    def submit(self, documents: Sequence[Document[T]]) -> None:
        """Have documents judged, each under the name by which its verdict will be delivered, once.

        They are checked together, so that the first verdict waits for all of them: a few dozen are enough.
        """
        self._threads.do(lambda: self._check(documents))

    def cancel(self) -> None:
        """Begin nothing more. Verdicts on what is under way may still be delivered."""
        self._is_cancelled = True

    def _check(self, documents: Sequence[Document[T]]) -> None:
        """Check documents as far as that goes without dice, and play the rest."""
        if self._is_cancelled:
            return
        try:
            verdicts, playable = self._static(documents)
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread, but somebody for verdicts
            if self._is_cancelled:
                return
            verdicts, playable = [(name, _failed(error)) for name, _ in documents], []
        if verdicts:
            self._deliver(verdicts)
        if playable:
            self._play(self._claimed(playable))

    def _static(
        self, documents: Sequence[Document[T]]
    ) -> tuple[list[tuple[T, Verdict]], list[tuple[list[T], Checked]]]:
        """The verdicts that are reached without dice, and what is to be played."""
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

    def _claimed(self, playable: Iterable[tuple[list[T], Checked]]) -> list[tuple[bytes, Checked]]:
        """Those that nobody plays already, each with what names its content."""
        claimed = []
        with self._lock:
            for names, checked in playable:
                key = bytes.fromhex(checked.spec_hash)
                if key in self._waiting:
                    self._waiting[key] += names
                else:
                    self._waiting[key] = list(names)
                    claimed.append((key, checked))
        return claimed

    def _play(self, claimed: list[tuple[bytes, Checked]]) -> None:
        """Play one after the other for a turn; the rest has to wait for the next one."""
        turn = Turn()
        while claimed and not self._is_cancelled:
            if turn.is_over:
                self._threads.do(lambda: self._play(claimed))
                return
            key, checked = claimed.pop()
            self._go_on(key, Stepped(self._judged(key, checked, ByHand(self._options.allowance))), turn)

    def _go_on(self, key: bytes, game: Stepped[Verdict], turn: Turn) -> None:
        """Play on for a turn; a game that takes longer gets turns of its own, behind all that waits."""
        try:
            while True:
                if self._is_cancelled:
                    game.cancel()
                    return
                if game.step():
                    break
                if turn.is_over:
                    self._threads.do(lambda: self._go_on(key, game, Turn()))
                    return
            verdict = game.result
        except Exception as error:  # noqa: BLE001 - whatever it is, it is of one document alone
            if self._is_cancelled:
                return
            verdict = _failed(error)
        with self._lock:
            names = self._waiting.pop(key)
        self._deliver([(name, verdict) for name in names])

    async def _judged(self, key: bytes, checked: Checked, worker: Worker) -> Verdict:
        """The verdict on what is to be played. Once it is kept, no other claim on the key plays again."""
        known = self._memory.find([key])
        if known:
            return known[key]
        verdict = await played(checked, self._options, worker)
        self._memory.keep([(key, verdict)])
        return verdict


def _checked(contents: Sequence[bytes]) -> Sequence[Checked | Verdict]:
    """What is known of each document, or why that cannot be known."""
    try:
        return sim.check_all(contents, threads=1)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is of one document alone
        if len(contents) == 1:
            return [_failed(error)]
    return [found for content in contents for found in _checked([content])]


def _failed(error: Exception) -> Verdict:
    """The verdict in place of one that was not reached."""
    if isinstance(error, PeripetyError):
        return Verdict(error=error)
    _log.error("unexpected error in a batch", extra=logs.outline(error))
    return Verdict(error=InternalError(f"The document could not be checked: {type(error).__name__}"))
