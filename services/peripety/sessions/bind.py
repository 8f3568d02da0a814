"""Registration of the session service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import add_SessionServiceServicer_to_server
from peripety.gateway.model import ModelGateway
from peripety.gateway.remote import RemoteModelGateway
from peripety.scenarios.model import ScenarioSource
from peripety.scenarios.programs import Programs
from peripety.scenarios.remote import RemoteScenarioSource
from peripety.sessions.narrating.narrator import Narrator
from peripety.sessions.odds import OddsTeller
from peripety.sessions.rulesets import Rulesets
from peripety.sessions.service import SessionServicer, room
from peripety.sessions.sessions import Sessions
from peripety.sessions.store import SessionStore
from peripety.workers import Workers

if TYPE_CHECKING:
    from peripety.wiring import Wiring

__all__ = ["bind"]


async def bind(wiring: Wiring) -> None:
    """Connect to the gateway and the scenario service, local or remote, and register the session service."""
    gateway = wiring.local(ModelGateway) or RemoteModelGateway(wiring.channel("gateway"))
    scenarios = wiring.local(ScenarioSource) or RemoteScenarioSource(wiring.channel("scenarios"))
    store = SessionStore(await wiring.database())
    rulesets = Rulesets(store.document, wiring.local(Programs) or Programs())
    config = wiring.config
    sessions = Sessions(
        store,
        scenarios,
        rulesets,
        Narrator(gateway, configured=config.model_provider),
        room(config.max_message_bytes),
        # A watcher occupies a call slot for long; turns must find a free one.
        watchers=max(1, config.max_concurrent_calls // 2),
    )
    wiring.when_stopping(sessions.aclose)
    sessions.look_out()
    workers = Workers("futures")
    wiring.resources.callback(workers.close)
    servicer = SessionServicer(sessions, OddsTeller(store, rulesets, workers))
    add_SessionServiceServicer_to_server(servicer, wiring.server)
    service = pb.DESCRIPTOR.services_by_name["SessionService"].full_name
    wiring.endless.add(f"/{service}/WatchSession")
    wiring.register(service)
