"""All places of stored answers together, and how old an answer may be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from peripety import logs
from peripety.errors import UnavailableError
from peripety.gateway.response_cache.answers import StoredAnswer, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.gateway.model import Completion
    from peripety.gateway.response_cache.memory import MemoryAnswers

__all__ = ["Place", "ResponseCache"]

_log = logging.getLogger(__name__)


class Place(Protocol):
    """Where answers outlive the process."""

    async def get(self, key: str) -> StoredAnswer | None:
        """Return an answer.

        Raises:
            UnavailableError: the place cannot be read now.
        """

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """Keep an answer in place of the one before.

        Args:
            key: its key.
            answer: the answer.
            expired: answers stored until this moment hold no more and need not be kept.

        Raises:
            UnavailableError: the place cannot be written now.
        """


class ResponseCache:
    """Answers in memory, and behind it in the other places.

    A place that fails costs what it would have saved, and nothing else.

    Args:
        memory: answers at hand.
        places: where answers outlive the process, in the order in which they are asked.
        ttl: seconds for which an answer holds.
        clock: seconds since 1970.
    """

    def __init__(
        self, memory: MemoryAnswers, places: Sequence[Place], *, ttl: float, clock: Callable[[], float]
    ) -> None:
        self._memory = memory
        self._places = tuple(places)
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
        """Return an answer from the first place that has it, and have it at hand from now on."""
        for place in self._places:
            try:
                answer = await place.get(key)
            except UnavailableError as error:
                _log.warning("stored answers cannot be read", extra=logs.outline(error))
                continue
            if answer is not None and self._holds(answer):
                self._memory.put(key, answer)
                return answer
        return None

    def keep(self, key: str, completion: Completion) -> StoredAnswer:
        """Have an answer at hand; `write` then takes it elsewhere."""
        answer = StoredAnswer(encode(completion), self._clock())
        self._memory.put(key, answer)
        return answer

    async def write(self, key: str, answer: StoredAnswer) -> None:
        """Take an answer to every place."""
        for place in self._places:
            try:
                await place.put(key, answer, expired=self._clock() - self._ttl)
            except UnavailableError as error:
                _log.warning("an answer cannot be stored", extra=logs.outline(error))

    def _holds(self, answer: StoredAnswer) -> bool:
        # A clock that was set back would make answers live long: one from the future does not count.
        return 0 <= self._clock() - answer.stored < self._ttl
