"""Service container passed to each bind function: settings, server, and access to other services.

A service in the same process is called directly, one in another process over a channel. The choice is made in
the container and in the bind functions, never in domain code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from peripety.core.redis_server import RedisServer
from peripety.core.storage.database import Database
from peripety.errors import FailedPreconditionError
from peripety.rpc.channel import open_channel, read_only_methods

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack

    import grpc

    from peripety.core.config import Config


T = TypeVar("T")


@dataclass
class ServiceContainer:
    """Resources of a process that its services share.

    Attributes:
        config: the settings.
        server: the server to register handlers with.
        resources: closed in reverse order after the server has stopped.
        services: full names of the registered services, for health and reflection.
        stop_callbacks: functions called when the server rejects new calls and running ones end.
        methods_without_deadline: full names of methods, `/package.Service/Method`, without a default
            deadline.
    """

    config: Config
    server: grpc.aio.Server
    resources: AsyncExitStack
    services: list[str] = field(default_factory=list)
    stop_callbacks: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    methods_without_deadline: set[str] = field(default_factory=set)
    _ports: dict[type[Any], Any] = field(default_factory=dict)
    _channels: dict[str, grpc.aio.Channel] = field(default_factory=dict)
    _database: Database | None = None
    _redis_server: RedisServer | None = None

    async def get_database(self) -> Database:
        """Return the database of this process, with the tables of every service imported so far."""
        if self._database is None:
            self._database = await Database.open(self.config.database_url.get_secret_value())
            self.resources.push_async_callback(self._database.close)
        else:
            await self._database.create_schema()
        return self._database

    def get_redis(self) -> RedisServer | None:
        """Return the Redis server of this process, or None if it is not configured."""
        if self._redis_server is None and self.config.redis_url is not None:
            self._redis_server = RedisServer(self.config.redis_url.get_secret_value())
            self.resources.push_async_callback(self._redis_server.close)
        return self._redis_server

    def register(self, port: type[T], implementation: T) -> None:
        """Register `implementation` for the services bound after this one."""
        self._ports[port] = implementation

    def get_local(self, port: type[T]) -> T | None:
        """Return the implementation of `port` registered in this process, or None."""
        return cast("T | None", self._ports.get(port))

    def get_channel(self, service: str) -> grpc.aio.Channel:
        """Return the channel to a service of another process; its calls carry deadline and request id.

        Args:
            service: short name, such as `gateway`.

        Raises:
            FailedPreconditionError: the address of the service is not configured.
        """
        address = getattr(self.config, f"{service}_address", None)
        if address is None:
            raise FailedPreconditionError(
                f"service {service} does not run in this process; serve it in this process or set"
                f" PERIPETY_{service.upper()}_ADDRESS",
                code="SERVICE_NOT_CONFIGURED",
            )
        if service not in self._channels:
            self._channels[service] = open_channel(
                address,
                max_message_bytes=self.config.max_message_bytes,
                retryable=tuple(read_only_methods(service)),
            )
            self.resources.push_async_callback(self._channels[service].close)
        return self._channels[service]

    def on_stopping(self, stop: Callable[[], Awaitable[None]]) -> None:
        """Register work that outlives its call to be stopped when the server starts to stop."""
        self.stop_callbacks.append(stop)
        self.resources.push_async_callback(stop)

    def add_service_name(self, full_service_name: str) -> None:
        """Announce a service, by its full protobuf name, to health checks and reflection."""
        self.services.append(full_service_name)
