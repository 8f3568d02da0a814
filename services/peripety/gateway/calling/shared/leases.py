"""Leases in Redis: reservations of a process that expire unless renewed."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from peripety import logs
from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from peripety.redis import RedisServer

__all__ = ["Leases"]

_SECONDS = 30.0
_RENEWALS = 3

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Leases:
    """Runner of the reserve and settle scripts; renews the leases of open reservations.

    Each reservation has a lease. If a process dies or loses the server for longer than the lease, its
    reservations count as fully used.

    Args:
        server: the Redis server of the process.
        seconds: duration of a lease without renewal.
    """

    def __init__(self, server: RedisServer, seconds: float = _SECONDS) -> None:
        self._server = server
        self._seconds = seconds
        self._held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._renewing: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[Any]] = set()

    @property
    def milliseconds(self) -> int:
        """Return the duration of a lease in milliseconds."""
        return int(self._seconds * 1000)

    async def run(self, scripts: Sequence[str], keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """Run scripts as one atomic step.

        Args:
            scripts: their names, shared code first.
            keys: the Redis keys.
            arguments: the other arguments.

        Raises:
            UnavailableError: the server is unavailable.
        """
        async with self._server.using() as client:
            return await client.register_script(_text(tuple(scripts)))(keys=list(keys), args=list(arguments))

    async def hold(
        self, take: Callable[[str], Coroutine[Any, Any, T]], give_back: Callable[[T], Awaitable[None]]
    ) -> T:
        """Reserve under a new number, and release it if the caller was cancelled meanwhile."""
        task = asyncio.ensure_future(take(uuid4().hex))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._later(_undo(task, give_back))
            raise

    def began(self, keys: Sequence[tuple[str, str]], number: str) -> None:
        """Start to renew a reservation; each pair of keys is a key of leases and a key of reservations."""
        for pair in keys:
            self._held[pair].add(number)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew_from_time_to_time())

    async def ended(
        self, keys: Sequence[tuple[str, str]], number: str, settle: Coroutine[Any, Any, Any]
    ) -> None:
        """Settle, even if the caller is cancelled meanwhile, and stop the renewal.

        If the server is unavailable, the lease expires and the reservation counts as fully used.
        """
        for pair in keys:
            self._held[pair].discard(number)
            if not self._held[pair]:
                del self._held[pair]
        try:
            await asyncio.shield(self._later(settle))
        except UnavailableError as error:
            _log.warning("a call cannot be settled", extra=logs.outline(error))

    async def aclose(self) -> None:
        """Wait until all reservations are settled, and stop the renewal."""
        # The Redis client may swallow a cancellation. The renewal then ends because no lease is left.
        self._held.clear()
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        if self._settling:
            await asyncio.wait(self._settling)

    def _later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def _renew_from_time_to_time(self) -> None:
        try:
            while self._held:
                await asyncio.sleep(self._seconds / _RENEWALS)
                for pair, numbers in list(self._held.items()):
                    await self._renew(pair, list(numbers))
        finally:
            self._renewing = None

    async def _renew(self, pair: tuple[str, str], numbers: list[str]) -> None:
        try:
            await self.run(["renew"], pair, [self.milliseconds, *numbers])
        except UnavailableError as error:
            _log.warning("leases cannot be renewed", extra=logs.outline(error))


@cache
def _text(names: tuple[str, ...]) -> str:
    scripts = resources.files(f"{__package__}.scripts")
    return "\n".join(scripts.joinpath(f"{name}.lua").read_text("utf-8") for name in names)


async def _undo(task: asyncio.Task[T], give_back: Callable[[T], Awaitable[None]]) -> None:
    try:
        await give_back(await task)
    except UnavailableError as error:
        _log.warning("reservation of a cancelled caller cannot be released", extra=logs.outline(error))
