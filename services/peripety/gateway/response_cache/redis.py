"""Stored answers on a Redis server: every replica finds them, and they outlive all of them."""

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
    """An entry for each answer, which Redis deletes when it holds no more, or sooner if it needs the memory.

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
