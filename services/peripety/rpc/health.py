"""Health of the server and of each service, with the active engine core in the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from peripety import __version__, sim

if TYPE_CHECKING:
    from collections.abc import Iterable

    import grpc.aio

__all__ = ["CORE_KEY", "VERSION_KEY", "Health"]

CORE_KEY = "x-peripety-core"
VERSION_KEY = "x-peripety-version"


class Health(health.aio.HealthServicer):
    """Standard health service; the response metadata contain the version and the engine core."""

    async def Check(  # noqa: N802 - the name is the protocol's
        self, request: health_pb2.HealthCheckRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> health_pb2.HealthCheckResponse:
        """Return the state of one service, or of the whole server for the empty name."""
        await context.send_initial_metadata(((CORE_KEY, sim.BACKEND), (VERSION_KEY, __version__)))
        return await super().Check(request, context)

    async def add_to(self, server: grpc.aio.Server, services: Iterable[str]) -> None:
        """Register with the server and report every service as serving."""
        health_pb2_grpc.add_HealthServicer_to_server(self, server)
        for service in services:
            await self.set(service, health_pb2.HealthCheckResponse.SERVING)
