"""Both places of stored answers together, and how old an answer may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from peripety import logs
from peripety.errors import UnavailableError
from peripety.gateway.response_cache.answers import StoredAnswer, encode, may_be_stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.gateway.model import Completion
    from peripety.gateway.response_cache.disk import DiskAnswers
    from peripety.gateway.response_cache.memory import MemoryAnswers

__all__ = ["ResponseCache"]

_log = structlog.get_logger(__name__)


class ResponseCache:
    """Answers in memory, and behind them on the disk.

    A disk that fails costs what it would have saved, and nothing else.

    Args:
        memory: answers at hand.
        disk: answers that outlive the process; None for none.
        ttl: seconds for which an answer holds.
        clock: seconds since 1970.
    """

    def __init__(
        self, memory: MemoryAnswers, disk: DiskAnswers | None, *, ttl: float, clock: Callable[[], float]
    ) -> None:
        self._memory = memory
        self._disk = disk
        self._ttl = ttl
        self._clock = clock

    def at_hand(self, key: str) -> StoredAnswer | None:
        """Return an answer from memory."""
        answer = self._memory.get(key)
        if answer is None or self._holds(answer):
            return answer
        self._memory.drop(key)
        return None

    async def look_up(self, key: str) -> StoredAnswer | None:
        """Return an answer from the disk, and have it at hand from now on."""
        if self._disk is None:
            return None
        try:
            answer = await self._disk.get(key)
        except UnavailableError as error:
            _log.warning("stored answers cannot be read", **logs.outline(error))
            return None
        if answer is None or not self._holds(answer):
            return None
        self._memory.put(key, answer)
        return answer

    def keep(self, key: str, completion: Completion) -> StoredAnswer | None:
        """Have an answer at hand, if it is one that may be stored; `write` then takes it to the disk."""
        if not may_be_stored(completion):
            return None
        answer = StoredAnswer(encode(completion), self._clock())
        self._memory.put(key, answer)
        return answer

    async def write(self, key: str, answer: StoredAnswer) -> None:
        """Take an answer to the disk."""
        if self._disk is None:
            return
        try:
            await self._disk.put(key, answer, expired=self._clock() - self._ttl)
        except UnavailableError as error:
            _log.warning("an answer cannot be stored", **logs.outline(error))

    def _holds(self, answer: StoredAnswer) -> bool:
        # A clock that was set back would make answers live long: one from the future does not count.
        return 0 <= self._clock() - answer.stored < self._ttl
