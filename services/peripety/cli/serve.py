"""`peripety serve`: run services until a signal stops them."""

from __future__ import annotations

import asyncio

import typer

from peripety import logs
from peripety.config import Config
from peripety.rpc import app

__all__ = ["serve"]


def serve(service: str | None, listen: str | None) -> None:
    """Serve one service, or all, until SIGTERM or Ctrl-C; then finish the calls in progress."""
    config = Config.from_environment(**({"listen": listen} if listen else {}))
    logs.configure(config)
    asyncio.run(_serve(config, {service} if service else set(app.SERVICES)))


async def _serve(config: Config, services: set[str]) -> None:
    async with app.serve(config, services) as running:
        end = asyncio.ensure_future(running.wait())
        await asyncio.sleep(0)  # signal handlers are installed before the line that a supervisor waits for
        typer.echo(f"listening on {running.address}")
        await end
