"""Tiers of the response cache, and the lifetime of answers."""

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
    """A persistent tier of the response cache."""

    async def get(self, key: str) -> StoredAnswer | None:
        """Return an answer.

        Raises:
            UnavailableError: the tier cannot be read now.
        """

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """Store an answer, replacing the previous one.

        Args:
            key: its key.
            answer: the answer.
            expired: answers stored up to this time have expired and may be dropped.

        Raises:
            UnavailableError: the tier cannot be written now.
        """


class ResponseCache:
    """Response cache: a tier in memory, backed by persistent tiers.

    A failing tier only costs the saving: its errors are not propagated.

    Args:
        memory: the tier in memory.
        places: the persistent tiers, in lookup order.
        ttl: lifetime of answers, in seconds.
        clock: current time, in seconds since 1970.
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
        """Return an answer from the first tier that has it, and store it in memory."""
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
        """Store an answer in memory; `write` then stores it in the other tiers."""
        answer = StoredAnswer(encode(completion), self._clock())
        self._memory.put(key, answer)
        return answer

    async def write(self, key: str, answer: StoredAnswer) -> None:
        """Store an answer in every persistent tier."""
        for place in self._places:
            try:
                await place.put(key, answer, expired=self._clock() - self._ttl)
            except UnavailableError as error:
                _log.warning("an answer cannot be stored", extra=logs.outline(error))

    def _holds(self, answer: StoredAnswer) -> bool:
        # If the clock is set back, answers would live too long: those from the future do not count.
        return 0 <= self._clock() - answer.stored < self._ttl
