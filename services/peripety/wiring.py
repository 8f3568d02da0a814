"""What a service's bind function is given: the settings, the server, and the way to its neighbours.

A service that runs in the same process is called directly (`local`), one that runs elsewhere over a channel
(`channel`); which of the two is decided here and in `bind.py`, never in domain code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from peripety.client.channel import open_channel
from peripety.client.services import reads
from peripety.errors import FailedPreconditionError
from peripety.redis import RedisServer
from peripety.storage import Database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack

    import grpc

    from peripety.config import Config

__all__ = ["Wiring"]

T = TypeVar("T")


@dataclass
class Wiring:
    """The parts of a process that its services share.

    Attributes:
        config: the settings.
        server: the server to register handlers with.
        resources: closed in reverse order after the server has stopped.
        services: full names of the registered services, for health and reflection.
        stopping: called once the server takes no new calls, while those under way end.
        endless: full names of methods, `/package.Service/Method`, that have no deadline of the server's.
    """

    config: Config
    server: grpc.aio.Server
    resources: AsyncExitStack
    services: list[str] = field(default_factory=list)
    stopping: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    endless: set[str] = field(default_factory=set)
    _ports: dict[type[Any], Any] = field(default_factory=dict)
    _channels: dict[str, grpc.aio.Channel] = field(default_factory=dict)
    _database: Database | None = None
    _redis: RedisServer | None = None

    async def database(self) -> Database:
        """Return the one database of this process, with the tables of every service imported so far."""
        if self._database is None:
            self._database = await Database.open(self.config.database_url.get_secret_value())
            self.resources.push_async_callback(self._database.close)
        else:
            await self._database.create_schema()
        return self._database

    def redis(self) -> RedisServer | None:
        """Return the one Redis server of this process; None when nobody named one."""
        if self._redis is None and self.config.redis_url is not None:
            self._redis = RedisServer(self.config.redis_url.get_secret_value())
            self.resources.push_async_callback(self._redis.close)
        return self._redis

    def provide(self, port: type[T], implementation: T) -> None:
        """Offer `implementation` to the services bound after this one."""
        self._ports[port] = implementation

    def local(self, port: type[T]) -> T | None:
        """Return what a co-located service provided for `port`, if one did."""
        return cast("T | None", self._ports.get(port))

    def channel(self, service: str) -> grpc.aio.Channel:
        """Return the channel to a service of another process; its calls carry deadline and request id.

        Args:
            service: short name, such as `gateway`.

        Raises:
            FailedPreconditionError: nobody said where the service is.
        """
        address = getattr(self.config, f"{service}_address", None)
        if address is None:
            raise FailedPreconditionError(
                f"The {service} service does not run in this process: serve it here too, or set"
                f" PERIPETY_{service.upper()}_ADDRESS to where it answers",
                code="SERVICE_NOT_CONFIGURED",
            )
        if service not in self._channels:
            self._channels[service] = open_channel(
                address, max_message_bytes=self.config.max_message_bytes, retryable=tuple(reads(service))
            )
            self.resources.push_async_callback(self._channels[service].close)
        return self._channels[service]

    def when_stopping(self, stop: Callable[[], Awaitable[None]]) -> None:
        """Have work that outlives its call stopped as soon as the server stops, and at the latest with it."""
        self.stopping.append(stop)
        self.resources.push_async_callback(stop)

    def register(self, full_service_name: str) -> None:
        """Announce a service, by its full protobuf name, to health checks and reflection."""
        self.services.append(full_service_name)
