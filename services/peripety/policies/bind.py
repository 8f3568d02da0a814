"""Puts policies into a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import RequestLog
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import add_PolicyServiceServicer_to_server
from peripety.policies.service import PolicyServicer
from peripety.policies.sources import Sources
from peripety.policies.store import PolicyStore

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Register the service."""
    database = await wiring.database()
    store = PolicyStore(database)
    servicer = PolicyServicer(store, Sources(store), RequestLog(database))
    add_PolicyServiceServicer_to_server(servicer, wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["PolicyService"].full_name)
