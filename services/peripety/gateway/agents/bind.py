"""Registers AgentService; runs where the gateway runs, whose conversations it continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import add_AgentServiceServicer_to_server
from peripety.clock import microseconds_now
from peripety.errors import InternalError
from peripety.gateway.agents.runs import Runs
from peripety.gateway.agents.service import AgentServicer
from peripety.gateway.agents.store import RunStore
from peripety.gateway.conversations.conversations import Conversations

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Register AgentService.

    Raises:
        InternalError: the gateway was not registered before.
    """
    conversations = wiring.local(Conversations)
    if conversations is None:
        raise InternalError("agents need the gateway in the same process; register it first")
    runs = Runs(RunStore(await wiring.database(), microseconds_now), conversations, microseconds_now)
    wiring.when_stopping(runs.aclose)
    add_AgentServiceServicer_to_server(AgentServicer(runs), wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["AgentService"].full_name)
