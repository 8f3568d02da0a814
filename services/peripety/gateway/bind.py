"""Puts the gateway into a process: for its neighbours directly, for everybody else over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import add_GatewayServiceServicer_to_server
from peripety.gateway.gateway import LocalModelGateway
from peripety.gateway.model import ModelGateway
from peripety.gateway.providers.registry import Providers
from peripety.gateway.service import GatewayServicer

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Make the configured provider ready, provide `ModelGateway`, and register the service."""
    providers = Providers(wiring.config)
    wiring.resources.push_async_callback(providers.aclose)
    gateway = LocalModelGateway(providers)
    wiring.provide(ModelGateway, gateway)
    add_GatewayServiceServicer_to_server(GatewayServicer(gateway), wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["GatewayService"].full_name)
