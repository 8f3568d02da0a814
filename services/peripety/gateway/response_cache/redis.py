"""Redis tier of the response cache: shared by all replicas, and independent of their lifetime."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from peripety.gateway.response_cache.answers import StoredAnswer

if TYPE_CHECKING:
    from peripety.redis import RedisServer

__all__ = ["RedisAnswers"]

_PREFIX = "peripety:answer:"
_STORED = struct.Struct(">d")


class RedisAnswers:
    """One entry per answer. Redis deletes it when it expires, or earlier if memory is short.

    Args:
        server: the server of the process.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def get(self, key: str) -> StoredAnswer | None:
        """See `Place.get`."""
        async with self._server.using() as client:
            entry = cast("bytes | None", await client.get(_PREFIX + key))
        if entry is None:
            return None
        (stored,) = _STORED.unpack_from(entry)
        return StoredAnswer(entry[_STORED.size :], stored)

    async def put(self, key: str, answer: StoredAnswer, *, expired: float) -> None:
        """See `Place.put`."""
        milliseconds = int((answer.stored - expired) * 1000)
        if milliseconds > 0:
            async with self._server.using() as client:
                await client.set(_PREFIX + key, _STORED.pack(answer.stored) + answer.data, px=milliseconds)
