"""Registration of the policy service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import add_PolicyServiceServicer_to_server
from peripety.core.call_context import now_micros
from peripety.core.concurrency import WorkerPool
from peripety.core.idempotency.store import IdempotencyStore
from peripety.core.runs.call_runs import CallRunStore
from peripety.gateway.answer_journal import JournaledGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.response import ModelGateway
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.compile_cache import ArtifactStore, CachingCompiler
from peripety.policy.decisions import PolicyResolver
from peripety.policy.service import PolicyServicer
from peripety.policy.store import PolicyStore
from peripety.policy.types import StoredPolicies

if TYPE_CHECKING:
    from peripety.policy.compile_cache import PolicyCompilerProtocol
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Find a gateway, provide `StoredPolicies`, and register the service."""
    inner = wiring.get_local(ModelGateway) or RemoteModelGateway(wiring.get_channel("gateway"))
    gateway = JournaledGateway(inner)
    artifacts = ArtifactStore(await wiring.get_database(), wiring.config.default_model_identity)
    await register_service_with(wiring, PolicyCompiler(gateway, artifacts), artifacts)


async def register_service_with(
    wiring: ServiceContainer,
    compiler: PolicyCompilerProtocol,
    artifacts: ArtifactStore,
) -> None:
    """Provide `StoredPolicies`, and register the service.

    Args:
        wiring: the process.
        compiler: the policy compiler.
        artifacts: the cache of its results.
    """
    database = await wiring.get_database()
    store = PolicyStore(database)
    wiring.register(StoredPolicies, store)
    workers = WorkerPool("policies")
    wiring.resources.callback(workers.close)
    servicer = PolicyServicer(
        CachingCompiler(compiler, store, artifacts),
        store,
        PolicyResolver(store),
        IdempotencyStore(database),
        CallRunStore(database, now_micros),
        wiring.config.default_model_identity,
        workers,
    )
    wiring.on_stopping(servicer.aclose)
    add_PolicyServiceServicer_to_server(servicer, wiring.server)
    wiring.add_service_name(pb.DESCRIPTOR.services_by_name["PolicyService"].full_name)
