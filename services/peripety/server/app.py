"""gRPC server: serves any set of services on one listener, from configuration to graceful shutdown.

    async with serve(config, services={"gateway"}, address="127.0.0.1:0") as app:
        await app.wait()

The listener and the configuration are parameters, so tests start the real server on a free port. A service
is loaded by importing its setup module only when it is served: serving one does not load the others.

Health is reported for the server and for each service, with the active engine core in the metadata.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME

from peripety import engine
from peripety.core.config import describe_listen_error, is_loopback, split_address
from peripety.core.module_loader import load_module
from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from peripety.rpc.container import ServiceContainer
from peripety.server.interceptor import CallInterceptor, server_options
from peripety.server.reflection import enable_reflection
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable

    from peripety.core.config import Config


CORE_KEY = "x-peripety-core"
VERSION_KEY = "x-peripety-version"


class HealthServicer(health.aio.HealthServicer):
    """Standard health service; the response metadata contain the version and the engine core."""

    async def Check(  # noqa: N802 - the name is the protocol's
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> health_pb2.HealthCheckResponse:
        """Return the state of one service, or of the whole server for the empty name."""
        await context.send_initial_metadata(((CORE_KEY, engine.BACKEND), (VERSION_KEY, __version__)))
        return await super().Check(request, context)

    async def add_to(self, server: grpc.aio.Server, services: Iterable[str]) -> None:
        """Register with the server and report every service as serving."""
        health_pb2_grpc.add_HealthServicer_to_server(self, server)
        for service in services:
            await self.set(service, health_pb2.HealthCheckResponse.SERVING)


RegisterService: TypeAlias = "Callable[[ServiceContainer], Awaitable[None]]"

# The modules that register each service, in this order: a service finds the ports of those before it.
SERVICES = {
    "gateway": ("peripety.gateway.setup", "peripety.agent.setup"),
    "scenarios": ("peripety.scenario.setup",),
    "sessions": ("peripety.session.setup",),
    "policies": ("peripety.policy.setup",),
    "testgen": ("peripety.testgen.setup",),
}
"""Short names of the services, each after the services it calls."""

_EXTRA_CALL_SLOTS = 64
_LATE_CALL_SECONDS = 0.05

_log = logging.getLogger(__name__)


class ServerApp:
    """A running server.

    Attributes:
        address: `host:port` to connect to; if port 0 was requested, the port chosen by the system.
        port: the port of `address`.
        services: full names of the services, as used by health checks and reflection.
    """

    def __init__(
        self,
        wiring: ServiceContainer,
        interceptor: CallInterceptor,
        health: HealthServicer,
        address: str,
    ) -> None:
        self._server = wiring.server
        self._stopping = wiring.stop_callbacks
        self._drain_seconds = wiring.config.drain_seconds
        self._interceptor = interceptor
        self._health = health
        self._drain_tasks: list[asyncio.Task[None]] = []
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
        """Reject new calls, report NOT_SERVING to health checks, and let running calls end.

        Args:
            grace: seconds to wait for running calls; the configured time if absent.
        """
        seconds = self._drain_seconds if grace is None else grace
        _log.info("stopping", extra={"grace_seconds": seconds})
        await self._health.enter_graceful_shutdown()
        self._interceptor.reject_new_calls()
        # gRPC cancels calls that arrive while it stops, without a status that makes the client try elsewhere.
        await asyncio.sleep(min(seconds, _LATE_CALL_SECONDS))
        await asyncio.gather(self._server.stop(seconds), *(stop() for stop in self._stopping))

    def _on_signal(self) -> None:
        grace = 0.0 if self._drain_tasks else None
        self._drain_tasks.append(asyncio.ensure_future(self.drain(grace)))


@asynccontextmanager
async def serve(
    config: Config,
    services: Collection[str] = SERVICES,
    address: str | None = None,
) -> AsyncIterator[ServerApp]:
    """Serve the named services until the block ends.

    Args:
        config: the settings.
        services: short names from `SERVICES`.
        address: `host:port` to listen on; the configured one if absent.

    Raises:
        InvalidArgumentError: a service is unknown, the address is invalid, or the script cannot be used.
        FailedPreconditionError: the address is open to other machines and encryption is off.
        UnavailableError: the address is in use.
    """
    unknown = sorted(set(services) - set(SERVICES))
    if unknown or not services:
        raise InvalidArgumentError(
            f"services: unknown {', '.join(unknown) or '(none)'}; choose from {', '.join(SERVICES)}",
            code="UNKNOWN_SERVICE",
        )
    # Imported on demand and in this order: a service finds the ports of the services it calls registered.
    binds = [
        load_module(module).register_service
        for name, modules in SERVICES.items()
        if name in services
        for module in modules
    ]
    async with (
        _script_server(config, services) as settings,
        serve_registered(settings, binds, address) as app,
    ):
        yield app


@asynccontextmanager
async def _script_server(config: Config, services: Collection[str]) -> AsyncIterator[Config]:
    """Start the scripted model server if the configuration needs one."""
    if not config.needs_script or "gateway" not in services:
        yield config
        return
    # Imported on demand: without a script, the server does not load the script engine.
    with_script = load_module("peripety.server.scripted_provider").with_script
    async with with_script(config) as settings:
        yield settings


@asynccontextmanager
async def serve_registered(
    config: Config,
    registrations: Iterable[RegisterService],
    address: str | None = None,
) -> AsyncIterator[ServerApp]:
    """Serve the services that the bind functions register; `serve` without the lookup by name."""
    address = address or config.listen
    _reject_open_plaintext(config, address)
    endless: set[str] = set()
    interceptor = CallInterceptor(config, endless)
    server = grpc.aio.server(
        interceptors=[interceptor],
        options=server_options(config),
        # Never reached by ordinary calls: the interceptor counts them and rejects them with a retry delay.
        maximum_concurrent_rpcs=config.max_concurrent_calls + _EXTRA_CALL_SLOTS,
    )
    async with AsyncExitStack() as resources:
        try:
            wiring = ServiceContainer(config, server, resources, methods_without_deadline=endless)
            for bind in registrations:
                await bind(wiring)
            health = HealthServicer()
            await health.add_to(server, wiring.services)
            enable_reflection((*wiring.services, SERVICE_NAME), server)
            app = ServerApp(wiring, interceptor, health, _listen(server, address))
            await server.start()
            _log.info(
                "serving",
                extra={
                    "address": app.address,
                    "services": list(app.services),
                    "core": engine.BACKEND,
                    "core_version": engine.BACKEND_VERSION,
                    "version": __version__,
                },
            )
            yield app
        finally:
            # Stopped before the resources close: a running call must not lose its database.
            await server.stop(0.1)


_CERTAIN_ERRORS = frozenset({errno.EADDRINUSE, errno.EACCES})


def _listen(server: grpc.aio.Server, address: str) -> str:
    error = _find_listen_error(address)
    # gRPC logs an address in use as an error of its own, so it does not get one.
    if error is None or error.errno not in _CERTAIN_ERRORS:
        try:
            return f"{address.rpartition(':')[0]}:{server.add_insecure_port(address)}"
        except RuntimeError:
            pass
    reason = "in use or not local" if error is None else describe_listen_error(error)
    raise UnavailableError(
        f"cannot listen on {address} ({reason}); set --listen or PERIPETY_LISTEN to another",
        code="ADDRESS_UNAVAILABLE",
    )


def _find_listen_error(address: str) -> OSError | None:
    """Return the reason why nothing can listen on an address, which gRPC only logs."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error
    return None


def _reject_open_plaintext(config: Config, address: str) -> None:
    """Raise an error for an open address without encryption, unless configuration allows it."""
    try:
        host, _ = split_address(address)
    except ValueError as error:
        raise InvalidArgumentError(f"listen address {error}", code="BAD_ADDRESS") from None
    if not config.insecure and not is_loopback(host):
        raise FailedPreconditionError(
            f"{address} is open to other machines and this server does not encrypt: listen on 127.0.0.1"
            " behind a proxy that does, or set PERIPETY_INSECURE=1 in a network you trust",
            code="PLAINTEXT_REFUSED",
        )
