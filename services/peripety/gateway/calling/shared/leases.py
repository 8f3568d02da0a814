"""What a process holds on a Redis server, for as long as it lives."""

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
    """Runs scripts that hand out and take back, and renews what was handed out.

    What a process holds has a lease. One that dies, or loses the server for so long, is taken to have used
    all that it held.

    Args:
        server: the Redis server of the process.
        seconds: how long a lease lasts without renewal.
    """

    def __init__(self, server: RedisServer, seconds: float = _SECONDS) -> None:
        self._server = server
        self._seconds = seconds
        self._held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._renewing: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[Any]] = set()

    @property
    def milliseconds(self) -> int:
        """How long a lease lasts."""
        return int(self._seconds * 1000)

    async def run(self, scripts: Sequence[str], keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """Run scripts as one step.

        Args:
            scripts: their names, what they have in common first.
            keys: what they work on.
            arguments: the rest.

        Raises:
            UnavailableError: the server cannot be used now.
        """
        async with self._server.using() as client:
            return await client.register_script(_text(tuple(scripts)))(keys=list(keys), args=list(arguments))

    async def hold(
        self, take: Callable[[str], Coroutine[Any, Any, T]], give_back: Callable[[T], Awaitable[None]]
    ) -> T:
        """Take something under a new number, and give it back when the caller has left meanwhile."""
        task = asyncio.ensure_future(take(uuid4().hex))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._later(_undo(task, give_back))
            raise

    def began(self, keys: Sequence[tuple[str, str]], number: str) -> None:
        """Renew from now on; each pair of keys is of leases and of what is held."""
        for pair in keys:
            self._held[pair].add(number)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew_from_time_to_time())

    async def ended(
        self, keys: Sequence[tuple[str, str]], number: str, settle: Coroutine[Any, Any, Any]
    ) -> None:
        """Settle, even when the caller leaves meanwhile, and renew no more.

        A server that cannot be used then takes the lease to have been used up when it runs out.
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
        """Wait until everything is settled, and renew no more."""
        # The client of Redis may swallow a cancellation; then the renewing ends because nothing is held.
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
        _log.warning("what nobody waits for cannot be given back", extra=logs.outline(error))
