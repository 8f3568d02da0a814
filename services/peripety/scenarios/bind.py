"""Registration of the scenario service in a process: in-process for other services, over gRPC for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import RequestLog
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import add_ScenarioServiceServicer_to_server
from peripety.gateway.model import ModelGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.scenarios.amending.amender import Amender
from peripety.scenarios.balancing.balancing import Balancer
from peripety.scenarios.batch.threads import Threads
from peripety.scenarios.certificates.certifier import Certifier
from peripety.scenarios.compile import Compiler
from peripety.scenarios.inspecting.inspector import Inspector
from peripety.scenarios.model import ScenarioSource
from peripety.scenarios.programs import Programs
from peripety.scenarios.registry import ScenarioRegistry
from peripety.scenarios.service import ScenarioServicer
from peripety.scenarios.writing.drafts import Drafts
from peripety.scenarios.writing.generator import Generator
from peripety.workers import Workers

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Register `ScenarioSource`, `Programs` and the gRPC service; the gateway must be available."""
    gateway = wiring.local(ModelGateway)
    if gateway is None:
        gateway = RemoteModelGateway(wiring.channel("gateway"))
    database = await wiring.database()
    registry = ScenarioRegistry(database)
    wiring.provide(ScenarioSource, registry)
    programs = Programs()
    wiring.provide(Programs, programs)
    workers = Workers()
    wiring.resources.callback(workers.close)
    threads = Threads()
    wiring.resources.callback(threads.close)
    servicer = ScenarioServicer(
        Drafts(Generator(gateway, wiring.config.model_provider, workers), database, wiring.config.answerer),
        Compiler(registry, programs, workers),
        Amender(gateway, wiring.config.model_provider, registry, programs, workers),
        Balancer(workers),
        Certifier(registry, programs, workers),
        Inspector(registry, programs, workers),
        registry,
        programs,
        RequestLog(database),
        threads,
    )
    add_ScenarioServiceServicer_to_server(servicer, wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["ScenarioService"].full_name)
