"""The harness: any set of services on one listener, from configuration to graceful stop.

    async with serve(config, services={"gateway"}, address="127.0.0.1:0") as app:
        await app.wait()

Listener and configuration are parameters, so that tests start the real thing on a free port. A service is
found by importing its bind function when it is asked for: serving one does not load the others.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import grpc.aio
from grpc_health.v1.health import SERVICE_NAME

from peripety import __version__, sim
from peripety.config import is_loopback, split_address
from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from peripety.rpc.health import Health
from peripety.rpc.interceptor import CallInterceptor
from peripety.rpc.options import server_options
from peripety.rpc.reflection import enable_reflection
from peripety.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable

    from peripety.config import Config

__all__ = ["SERVICES", "App", "Bind", "serve", "serve_bound"]

Bind: TypeAlias = "Callable[[Wiring], Awaitable[None]]"

SERVICES = ("gateway", "scenarios", "sessions", "policies", "testgen")
"""Short names of the services, each after those it calls."""

_INFRASTRUCTURE_CALLS = 64
_LAST_CALLS_SECONDS = 0.05

_log = logging.getLogger(__name__)


class App:
    """A running server.

    Attributes:
        address: the `host:port` to connect to; the port is the one the system chose when 0 was asked for.
        port: that port.
        services: full names of the services, as health and reflection know them.
    """

    def __init__(self, wiring: Wiring, interceptor: CallInterceptor, health: Health, address: str) -> None:
        self._server = wiring.server
        self._stopping = wiring.stopping
        self._drain_seconds = wiring.config.drain_seconds
        self._interceptor = interceptor
        self._health = health
        self._stops: list[asyncio.Task[None]] = []
        self.address = address
        self.port = split_address(address)[1]
        self.services = tuple(wiring.services)

    async def wait(self) -> None:
        """Serve until SIGTERM or SIGINT, then drain; a second signal stops at once."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self._on_signal)
        try:
            await self._server.wait_for_termination()
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    async def drain(self, grace: float | None = None) -> None:
        """Take no new calls, say so to health checks, and let those under way end.

        Args:
            grace: seconds they are given; the configured time when absent.
        """
        seconds = self._drain_seconds if grace is None else grace
        _log.info("stopping", extra={"grace_seconds": seconds})
        await self._health.enter_graceful_shutdown()
        self._interceptor.turn_away()
        # The library cancels a call that comes while it stops, which tells nobody to try elsewhere.
        await asyncio.sleep(min(seconds, _LAST_CALLS_SECONDS))
        await asyncio.gather(self._server.stop(seconds), *(stop() for stop in self._stopping))

    def _on_signal(self) -> None:
        grace = 0.0 if self._stops else None
        self._stops.append(asyncio.ensure_future(self.drain(grace)))


@asynccontextmanager
async def serve(
    config: Config, services: Collection[str] = SERVICES, address: str | None = None
) -> AsyncIterator[App]:
    """Serve the named services until the block ends.

    Args:
        config: the settings.
        services: short names out of `SERVICES`.
        address: `host:port` to listen on; the configured one when absent.

    Raises:
        InvalidArgumentError: there is no such service, the address is none, or the script cannot be used.
        FailedPreconditionError: the address is open to other machines and encryption is off.
        UnavailableError: the address is taken.
    """
    unknown = sorted(set(services) - set(SERVICES))
    if unknown or not services:
        raise InvalidArgumentError(
            f"Services to serve: {', '.join(unknown) or 'none'} given; choose from {', '.join(SERVICES)}",
            code="UNKNOWN_SERVICE",
        )
    # Imported here and in this order: a service finds the ports of those it calls already provided.
    binds = [import_module(f"peripety.{name}.bind").bind for name in SERVICES if name in services]
    async with _script_for(config, services) as settings, serve_bound(settings, binds, address) as app:
        yield app


@asynccontextmanager
async def _script_for(config: Config, services: Collection[str]) -> AsyncIterator[Config]:
    """Serve the script that answers the gateway's prompts, if there is one."""
    if not config.needs_script or "gateway" not in services:
        yield config
        return
    # Only who has a script loads what reads it.
    with_script = import_module("peripety.rpc.scripted").with_script
    async with with_script(config) as settings:
        yield settings


@asynccontextmanager
async def serve_bound(
    config: Config, binds: Iterable[Bind], address: str | None = None
) -> AsyncIterator[App]:
    """Serve whatever the bind functions register; `serve` with the services spelled out."""
    address = address or config.listen
    _refuse_open_plaintext(config, address)
    endless: set[str] = set()
    interceptor = CallInterceptor(config, endless)
    server = grpc.aio.server(
        interceptors=[interceptor],
        options=server_options(config),
        # Never reached by ordinary calls, which the interceptor counts and refuses with a time to wait.
        maximum_concurrent_rpcs=config.max_concurrent_calls + _INFRASTRUCTURE_CALLS,
    )
    async with AsyncExitStack() as resources:
        try:
            wiring = Wiring(config, server, resources, endless=endless)
            for bind in binds:
                await bind(wiring)
            health = Health()
            await health.add_to(server, wiring.services)
            enable_reflection((*wiring.services, SERVICE_NAME), server)
            app = App(wiring, interceptor, health, _listen(server, address))
            await server.start()
            _log.info(
                "serving",
                extra={
                    "address": app.address,
                    "services": list(app.services),
                    "core": sim.BACKEND,
                    "core_version": sim.BACKEND_VERSION,
                    "version": __version__,
                },
            )
            yield app
        finally:
            # Before the resources close: no call may find its database gone.
            await server.stop(0.1)


def _listen(server: grpc.aio.Server, address: str) -> str:
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise UnavailableError(
            f"Cannot listen on {address}: it is taken or not of this machine; set PERIPETY_LISTEN to another",
            code="ADDRESS_UNAVAILABLE",
        ) from None
    return f"{address.rpartition(':')[0]}:{port}"


def _refuse_open_plaintext(config: Config, address: str) -> None:
    """Refuse to serve other machines without encryption unless somebody has said that this is meant."""
    try:
        host, _ = split_address(address)
    except ValueError as error:
        raise InvalidArgumentError(f"The address to listen on {error}", code="BAD_ADDRESS") from None
    if not config.insecure and not is_loopback(host):
        raise FailedPreconditionError(
            f"{address} is open to other machines and this server does not encrypt: listen on 127.0.0.1"
            " behind a proxy that does, or set PERIPETY_INSECURE=1 in a network you trust",
            code="PLAINTEXT_REFUSED",
        )
