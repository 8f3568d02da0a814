"""Registration of the scenario service in a process: in-process for other services, over gRPC for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import add_ScenarioServiceServicer_to_server
from peripety.core.call_context import now_micros
from peripety.core.concurrency import WorkerPool
from peripety.core.idempotency.store import IdempotencyStore
from peripety.core.runs.call_runs import CallRunStore
from peripety.gateway.answer_journal import JournaledGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.response import ModelGateway
from peripety.scenario.admission import ScenarioRegistrar
from peripety.scenario.amendment.amender import Amender
from peripety.scenario.balance.balancer import Balancer
from peripety.scenario.batch.validator import FairThreadPool
from peripety.scenario.certificate.certifier import Certifier
from peripety.scenario.generation.draft_cache import DraftCache
from peripety.scenario.generation.loop import ScenarioGenerator
from peripety.scenario.registry import ProgramCache, ScenarioRegistry
from peripety.scenario.rule_graph.activity import Inspector
from peripety.scenario.service import ScenarioServicer
from peripety.scenario.types import ScenarioSource

if TYPE_CHECKING:
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Register `ScenarioSource`, `Programs` and the gRPC service; the gateway must be available."""
    gateway = wiring.get_local(ModelGateway)
    if gateway is None:
        gateway = RemoteModelGateway(wiring.get_channel("gateway"))
    gateway = JournaledGateway(gateway)
    database = await wiring.get_database()
    registry = ScenarioRegistry(database)
    wiring.register(ScenarioSource, registry)
    programs = ProgramCache()
    wiring.register(ProgramCache, programs)
    workers = WorkerPool()
    wiring.resources.callback(workers.close)
    threads = FairThreadPool()
    wiring.resources.callback(threads.close)
    servicer = ScenarioServicer(
        DraftCache(
            ScenarioGenerator(gateway, wiring.config.model_provider, workers),
            database,
            wiring.config.default_model_identity,
        ),
        ScenarioRegistrar(registry, programs, workers),
        Amender(gateway, wiring.config.model_provider, registry, programs, workers),
        CallRunStore(database, now_micros),
        wiring.config.default_model_identity,
        Balancer(workers),
        Certifier(registry, programs, workers),
        Inspector(registry, programs, workers),
        registry,
        programs,
        IdempotencyStore(database),
        threads,
    )
    wiring.on_stopping(servicer.aclose)
    add_ScenarioServiceServicer_to_server(servicer, wiring.server)
    wiring.add_service_name(pb.DESCRIPTOR.services_by_name["ScenarioService"].full_name)
