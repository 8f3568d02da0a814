"""Embedded services: servers in the process of a command, and `peripety serve`.

A command reaches its own services over gRPC on a free port, as it reaches a remote server.
`run_with_progress` shows a progress bar for a long call.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from peripety.certification.certificate import CertificationProgress
from peripety.cli.output import EXIT_INTERRUPTED, error_console, printable, progress_bar
from peripety.core import logging_setup
from peripety.core.concurrency import closing
from peripety.core.config import Config, LogLevel, split_address
from peripety.errors import InternalError
from peripety.rpc.channel import open_channel
from peripety.scenario.types import Progress
from peripety.server import app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    import grpc.aio


commands = typer.Typer()


@asynccontextmanager
async def embedded_services(*names: str, **settings: Any) -> AsyncIterator[grpc.aio.Channel]:
    """Run the named services and yield a channel to them.

    Logs only errors unless PERIPETY_LOG_LEVEL is set: the command reports the rest itself.

    Args:
        *names: the services.
        **settings: overrides of the environment; see `Config`.
    """
    quiet = {} if os.environ.get("PERIPETY_LOG_LEVEL") else {"log_level": LogLevel.ERROR}
    config = Config.from_environment(**quiet, **settings)
    _name_misspelt_variables()
    logging_setup.configure(config)
    async with (
        app.serve(config, services=set(names), address="127.0.0.1:0") as running,
        open_channel(running.address, max_message_bytes=config.max_message_bytes) as channel,
    ):
        yield channel


def _name_misspelt_variables() -> None:
    for name, similar in Config.find_misspelt_variables().items():
        error_console().print(
            f"warning: {printable(name)} is not a setting; did you mean {similar}?", style="yellow"
        )


@asynccontextmanager
async def services_at(server: str | None, *names: str, **settings: Any) -> AsyncIterator[grpc.aio.Channel]:
    """Yield a channel to a server, or to embedded services if no server is given.

    Args:
        server: its `host:port`.
        names: the services to embed.
        settings: overrides of the environment for these; see `Config`.

    Raises:
        BadParameter: the server is not `host:port`.
    """
    if server is not None:
        try:
            split_address(server)
        except ValueError as error:
            raise typer.BadParameter(f"--server {error}") from None
    async with embedded_services(*names, **settings) if server is None else open_channel(server) as channel:
        yield channel


async def _serve(config: Config, services: set[str], *, with_edge: bool) -> None:
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(app.serve(config, services))
        url = await stack.enter_async_context(_serve_edge(config, running.address)) if with_edge else None
        end = asyncio.ensure_future(running.wait())
        await asyncio.sleep(0)  # signal handlers are installed before the line that a supervisor waits for
        typer.echo(f"listening on {running.address}")
        if url is not None:
            typer.echo(f"page and HTTP interface: {url}")
        await end


def _serve_edge(config: Config, services_address: str) -> AbstractAsyncContextManager[str]:
    # Imported on demand: most commands embed services, and none of them the edge with its HTTP framework.
    from peripety.edge.app import serve_edge  # noqa: PLC0415

    return serve_edge(config, services_address)


async def _serve_edge_alone(config: Config) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with _serve_edge(config, config.services_address) as url:
        typer.echo(f"page and HTTP interface: {url}")
        await stopped.wait()


_Result = TypeVar("_Result")


def run_with_progress(events: AsyncIterator[object], doing: str, *kinds: type[_Result]) -> _Result:
    """Show the progress of some work to its end, and return its result.

    Ctrl-C ends the process.

    Args:
        events: progress events, and the result as the last one.
        doing: the name of the work.
        kinds: the types of the result.
    """
    try:
        return asyncio.run(_last_event(events, doing, kinds))
    except (KeyboardInterrupt, asyncio.CancelledError):
        error_console().print("interrupted")
        # A simulation in progress cannot be stopped, and Python would wait for its thread, perhaps for hours.
        os._exit(EXIT_INTERRUPTED)


async def _last_event(events: AsyncIterator[object], doing: str, kinds: tuple[type[_Result], ...]) -> _Result:
    task = cast("asyncio.Task[_Result]", asyncio.current_task())
    # A signal delivered to another thread wakes the event loop only if the loop itself handles it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    done = 0.0
    with progress_bar(doing, total=1.0) as advance:
        async with closing(events):
            async for event in events:
                if isinstance(event, Progress | CertificationProgress):
                    advance(event.fraction - done)
                    done = event.fraction
                elif isinstance(event, kinds):
                    return event
    raise InternalError("the operation ended without a result")


class ServiceName(Enum):
    """Services that `serve` can run in one process."""

    ALL = "all"
    GATEWAY = "gateway"
    SCENARIOS = "scenarios"
    SESSIONS = "sessions"
    POLICIES = "policies"
    TESTGEN = "testgen"
    EDGE = "edge"


@commands.command()
def serve(
    service: Annotated[
        ServiceName,
        typer.Argument(
            metavar="[SERVICE]", help=f"Service to run: {', '.join(name.value for name in ServiceName)}."
        ),
    ] = ServiceName.ALL,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on; port 0 selects a free port. "
            "[default: PERIPETY_LISTEN, else 127.0.0.1:50051]",
        ),
    ] = None,
) -> None:
    """Run all services and the HTTP edge, or one of them.

    The edge listens on PERIPETY_EDGE_LISTEN. Alone, it calls the services at PERIPETY_SERVICES_ADDRESS.
    SIGTERM or Ctrl-C stops it after the calls in progress.
    """
    if listen:
        try:
            split_address(listen)
        except ValueError as error:
            raise typer.BadParameter(f"--listen {error}") from None
    name = "edge_listen" if service is ServiceName.EDGE else "listen"
    config = Config.from_environment(**({name: listen} if listen else {}))
    _name_misspelt_variables()
    logging_setup.configure(config)
    if service is ServiceName.EDGE:
        asyncio.run(_serve_edge_alone(config))
        return
    services = set(app.SERVICES) if service is ServiceName.ALL else {service.value}
    asyncio.run(_serve(config, services, with_edge=service is ServiceName.ALL))
