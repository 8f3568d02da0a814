"""Registration of the test generation service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import RequestLog
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import add_TestGenServiceServicer_to_server
from peripety.clock import microseconds_now
from peripety.gateway.model import ModelGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.policies.model import StoredPolicies
from peripety.policies.remote import RemoteStoredPolicies
from peripety.scenarios.model import ScenarioSource
from peripety.scenarios.remote import RemoteScenarioSource
from peripety.testgen.reruns import Reruns
from peripety.testgen.runs import Runs
from peripety.testgen.service import TestGenServicer
from peripety.testgen.sources import Sources
from peripety.testgen.store import RunStore
from peripety.workers import Workers

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind", "bind_with"]


async def bind(wiring: Wiring) -> None:
    """Find a gateway, and register the service."""
    gateway = wiring.local(ModelGateway) or RemoteModelGateway(wiring.channel("gateway"))
    await bind_with(wiring, gateway)


async def bind_with(wiring: Wiring, gateway: ModelGateway) -> None:
    """Register the service. Stored scenarios and policies are located when they are first used.

    Args:
        wiring: the process.
        gateway: the model gateway of the runs.
    """

    def scenarios() -> ScenarioSource:
        return wiring.local(ScenarioSource) or RemoteScenarioSource(wiring.channel("scenarios"))

    def policies() -> StoredPolicies:
        return wiring.local(StoredPolicies) or RemoteStoredPolicies(wiring.channel("policies"))

    database = await wiring.database()
    store = RunStore(database, microseconds_now)
    workers = Workers("testgen")
    wiring.resources.callback(workers.close)
    sources = Sources(scenarios, policies, workers, commands=wiring.config.testgen_commands)
    runs = Runs(store, gateway, sources, workers, microseconds_now)
    wiring.when_stopping(runs.aclose)
    servicer = TestGenServicer(runs, Reruns(store, sources, workers), RequestLog(database))
    add_TestGenServiceServicer_to_server(servicer, wiring.server)
    wiring.register(pb.DESCRIPTOR.services_by_name["TestGenService"].full_name)
