"""Registration of the test generation service in a process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import add_TestGenServiceServicer_to_server
from peripety.core.call_context import now_micros
from peripety.core.concurrency import WorkerPool
from peripety.core.idempotency.store import IdempotencyStore
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.response import ModelGateway
from peripety.policy.remote import RemoteStoredPolicies
from peripety.policy.types import StoredPolicies
from peripety.scenario.remote import RemoteScenarioSource
from peripety.scenario.types import ScenarioSource
from peripety.testgen.generation_runs import GenerationReruns, GenerationRuns
from peripety.testgen.service import TestGenServicer
from peripety.testgen.store import GenerationRunStore
from peripety.testgen.subject_source import SubjectResolver

if TYPE_CHECKING:
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Find a gateway, and register the service."""
    gateway = wiring.get_local(ModelGateway) or RemoteModelGateway(wiring.get_channel("gateway"))
    await register_service_with(wiring, gateway)


async def register_service_with(wiring: ServiceContainer, gateway: ModelGateway) -> None:
    """Register the service. Stored scenarios and policies are located when they are first used.

    Args:
        wiring: the process.
        gateway: the model gateway of the runs.
    """

    def scenarios() -> ScenarioSource:
        return wiring.get_local(ScenarioSource) or RemoteScenarioSource(wiring.get_channel("scenarios"))

    def policies() -> StoredPolicies:
        return wiring.get_local(StoredPolicies) or RemoteStoredPolicies(wiring.get_channel("policies"))

    database = await wiring.get_database()
    store = GenerationRunStore(database, now_micros)
    workers = WorkerPool("testgen")
    wiring.resources.callback(workers.close)
    sources = SubjectResolver(
        scenarios,
        policies,
        workers,
        commands=wiring.config.testgen_commands,
        unfenced=wiring.config.testgen_unfenced,
    )
    find_model = partial(ModelCatalog.load(wiring.config.models).find_requested, config=wiring.config)
    runs = GenerationRuns(store, gateway, sources, workers, now_micros, find_model)
    wiring.on_stopping(runs.aclose)
    servicer = TestGenServicer(
        runs,
        GenerationReruns(store, sources, workers),
        IdempotencyStore(database),
        wiring.config.testgen_tasks,
    )
    add_TestGenServiceServicer_to_server(servicer, wiring.server)
    wiring.add_service_name(pb.DESCRIPTOR.services_by_name["TestGenService"].full_name)
