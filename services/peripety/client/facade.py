"""Typed stubs of all services behind one address."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from peripety.client.channel import open_channel
from peripety.client.options import DEFAULT_MESSAGE_BYTES
from peripety.client.services import SERVICES, reads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

__all__ = ["Client", "connect"]


class Client:
    """Stubs of every service over one channel.

    Calls take generated messages and return or stream them. They raise `PeripetyError`, always have a
    deadline (`timeout=` in seconds), and end when their task is cancelled.

    Attributes:
        gateway: language models.
        agents: agent runs, described by manifests of phases over one conversation.
        scenarios: scenarios from texts.
        sessions: sessions of scenarios.
        policies: policies from written rules, and their decisions.
        tests: generated and evaluated tests.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        # Servers open channels, too, but do not need the generated code of services they neither serve nor
        # call.
        from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceStub  # noqa: PLC0415
        from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub  # noqa: PLC0415
        from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub  # noqa: PLC0415
        from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub  # noqa: PLC0415
        from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub  # noqa: PLC0415
        from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub  # noqa: PLC0415

        self.gateway = GatewayServiceStub(channel)
        self.agents = AgentServiceStub(channel)
        self.scenarios = ScenarioServiceStub(channel)
        self.sessions = SessionServiceStub(channel)
        self.policies = PolicyServiceStub(channel)
        self.tests = TestGenServiceStub(channel)


@asynccontextmanager
async def connect(address: str, *, max_message_bytes: int = DEFAULT_MESSAGE_BYTES) -> AsyncIterator[Client]:
    """Open a client of the server at `host:port`; read-only methods are retried if it is unavailable."""
    retryable = [name for service in SERVICES for name in reads(service)]
    async with open_channel(address, max_message_bytes=max_message_bytes, retryable=retryable) as channel:
        yield Client(channel)
