"""Registration of the session service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import add_SessionServiceServicer_to_server
from peripety.core.concurrency import WorkerPool
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.response import ModelGateway
from peripety.scenario.registry import ProgramCache
from peripety.scenario.remote import RemoteScenarioSource
from peripety.scenario.types import ScenarioSource
from peripety.session.forecast import OutcomeForecaster
from peripety.session.narration.narrator import Narrator
from peripety.session.service import SessionServicer, message_limit
from peripety.session.session_manager import SessionManager
from peripety.session.session_view import RulesetCache
from peripety.session.store.session_store import SessionStore

if TYPE_CHECKING:
    from peripety.rpc.container import ServiceContainer


async def register_service(wiring: ServiceContainer) -> None:
    """Connect to the gateway and the scenario service, local or remote, and register the session service."""
    gateway = wiring.local(ModelGateway) or RemoteModelGateway(wiring.channel("gateway"))
    scenarios = wiring.local(ScenarioSource) or RemoteScenarioSource(wiring.channel("scenarios"))
    store = SessionStore(await wiring.database())
    rulesets = RulesetCache(store.document, wiring.local(ProgramCache) or ProgramCache())
    config = wiring.config
    sessions = SessionManager(
        store,
        scenarios,
        rulesets,
        Narrator(gateway, configured=config.model_provider),
        message_limit(config.max_message_bytes),
        # A watcher occupies a call slot for long; turns must find a free one.
        watchers=max(1, config.max_concurrent_calls // 2),
    )
    wiring.when_stopping(sessions.aclose)
    sessions.look_out()
    workers = WorkerPool("futures")
    wiring.resources.callback(workers.close)
    servicer = SessionServicer(sessions, OutcomeForecaster(store, rulesets, workers))
    add_SessionServiceServicer_to_server(servicer, wiring.server)
    service = pb.DESCRIPTOR.services_by_name["SessionService"].full_name
    wiring.endless.add(f"/{service}/WatchSession")
    wiring.register(service)
