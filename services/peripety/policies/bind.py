"""Registration of the policy service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import RequestLog
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import add_PolicyServiceServicer_to_server
from peripety.gateway.model import ModelGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.policies.cached import CachedCompiler
from peripety.policies.compiling.compiler import PolicyCompiler
from peripety.policies.model import StoredPolicies
from peripety.policies.service import PolicyServicer
from peripety.policies.sources import Sources
from peripety.policies.store import PolicyStore
from peripety.policies.stored_artifacts import StoredArtifacts
from peripety.workers import Workers

if TYPE_CHECKING:
    from peripety.policies.cached import Compiles
    from peripety.wiring import Wiring

__all__ = ["bind", "bind_with"]


async def bind(wiring: Wiring) -> None:
    """Find a gateway, provide `StoredPolicies`, and register the service."""
    gateway = wiring.local(ModelGateway) or RemoteModelGateway(wiring.channel("gateway"))
    artifacts = StoredArtifacts(await wiring.database(), wiring.config.answerer)
    await bind_with(wiring, PolicyCompiler(gateway, artifacts), artifacts)


async def bind_with(wiring: Wiring, compiler: Compiles, artifacts: StoredArtifacts) -> None:
    """Provide `StoredPolicies`, and register the service.

    Args:
        wiring: the process.
        compiler: the policy compiler.
        artifacts: the cache of its results.
    """
    database = await wiring.database()
    store = PolicyStore(database)
    wiring.provide(StoredPolicies, store)
    workers = Workers("policies")
    wiring.resources.callback(workers.close)
    servicer = PolicyServicer(
        CachedCompiler(compiler, store, artifacts), store, Sources(store), RequestLog(database), workers
    )
    add_PolicyServiceServicer_to_server(servicer, wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["PolicyService"].full_name)
