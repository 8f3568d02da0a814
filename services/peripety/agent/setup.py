"""Registers AgentService; runs where the gateway runs, whose conversations it continues."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from peripety.agent.runs import AgentRuns
from peripety.agent.service import AgentServicer
from peripety.agent.store import AgentRunStore
from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.agent.v1.agent_pb2_grpc import add_AgentServiceServicer_to_server
from peripety.core.call_context import now_micros
from peripety.errors import InternalError
from peripety.gateway.conversations.manager import ConversationManager
from peripety.gateway.models.catalog import ModelCatalog

if TYPE_CHECKING:
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Register AgentService.

    Raises:
        InternalError: the gateway was not registered before.
    """
    conversations = wiring.get_local(ConversationManager)
    if conversations is None:
        raise InternalError("agents need the gateway in the same process; register it first")
    find_model = partial(ModelCatalog.load(wiring.config.models).find_requested, config=wiring.config)
    store = AgentRunStore(await wiring.get_database(), now_micros)
    runs = AgentRuns(store, conversations, now_micros, find_model)
    wiring.on_stopping(runs.aclose)
    add_AgentServiceServicer_to_server(AgentServicer(runs), wiring.server)
    wiring.add_service_name(pb.DESCRIPTOR.services_by_name["AgentService"].full_name)
