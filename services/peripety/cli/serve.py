"""`peripety serve`: the services until somebody stops them."""

from __future__ import annotations

import asyncio

import typer

from peripety import logs
from peripety.config import Config
from peripety.rpc import app

__all__ = ["serve"]


def serve(service: str | None, listen: str | None) -> None:
    """Serve one service, or all of them, until SIGTERM or Ctrl-C; then let the calls under way end."""
    config = Config.from_environment(**({"listen": listen} if listen else {}))
    logs.configure(config)
    asyncio.run(_serve(config, {service} if service else set(app.SERVICES)))


async def _serve(config: Config, services: set[str]) -> None:
    async with app.serve(config, services) as running:
        end = asyncio.ensure_future(running.wait())
        await asyncio.sleep(0)  # signals are handled from here on: who reads the line may send one at once
        typer.echo(f"listening on {running.address}")
        await end
