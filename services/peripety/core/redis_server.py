"""Redis server of a process, if configured: short-lived state that replicas share and may lose.

Redis is optional. On failure it raises an `UnavailableError`, and its users continue without it.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from redis.asyncio import Redis


_CONNECTIONS = 16
_TIMEOUT_SECONDS = 1.0
_PAUSE_SECONDS = 5.0


class RedisServer:
    """Redis client of the process, which connects on first use.

    Args:
        url: `redis://user:password@host:port/number`, or `rediss://` for an encrypted connection.
        clock: returns monotonic seconds.

    Raises:
        FailedPreconditionError: the client package is not installed.
        InvalidArgumentError: the URL is invalid.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import redis.asyncio as library  # noqa: PLC0415 - an extra
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
        except ImportError as error:
            raise FailedPreconditionError(
                "PERIPETY_REDIS_URL: Redis needs the package redis; run pip install 'peripety[redis]'",
                code="MISSING_PACKAGE",
            ) from error
        try:
            pool = library.BlockingConnectionPool.from_url(
                url,
                max_connections=_CONNECTIONS,
                timeout=_TIMEOUT_SECONDS,
                socket_connect_timeout=_TIMEOUT_SECONDS,
                socket_timeout=_TIMEOUT_SECONDS,
                # One immediate retry: the server may have closed an idle connection.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError:
            # The exception is not chained: its text may quote the URL with the password.
            raise InvalidArgumentError(
                "PERIPETY_REDIS_URL: invalid Redis URL; a complete example is"
                " rediss://user:password@host:port/0",
                code="BAD_CONFIGURATION",
            ) from None
        self._client = library.Redis.from_pool(pool)
        self._error_type = library.RedisError
        self._clock = clock
        self._paused_until = clock()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Redis]:
        """Run the block with the client.

        After a failure the server is not used for some seconds (circuit breaker), so that an outage does not
        cost every caller a timeout.

        Raises:
            UnavailableError: the server does not respond, rejects a command, or failed moments ago.
        """
        if self._clock() < self._paused_until:
            raise _unavailable("resting")
        try:
            yield self._client
        except self._error_type as error:
            self._paused_until = self._clock() + _PAUSE_SECONDS
            raise _unavailable(type(error).__name__) from error

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def _unavailable(fault: str) -> UnavailableError:
    return UnavailableError(
        f"Redis server is unavailable ({fault}); try again later",
        code="REDIS_UNAVAILABLE",
        details={"fault": fault},
        retry_after=_PAUSE_SECONDS,
    )
