"""Registration of the session service in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import add_SessionServiceServicer_to_server
from peripety.core.concurrency import WorkerPool
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.response import ModelGateway
from peripety.scenario.registry import ProgramCache
from peripety.scenario.remote import RemoteScenarioSource
from peripety.scenario.types import ScenarioSource
from peripety.session.forecast import OutcomeForecaster
from peripety.session.narration.narrator import Narrator
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.service import SessionServicer, message_limit
from peripety.session.session_manager import SessionManager
from peripety.session.session_view import RulesetCache
from peripety.session.store.session_store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.core.config import Config
    from peripety.rpc.container import ServiceContainer


def _room_chooser(config: Config) -> Callable[[str | None], PromptRoom]:
    """Return a function that derives the room of a narrator's prompt from the model's catalogue entry."""
    catalog = ModelCatalog.load(config.models)

    def choose(model: str | None) -> PromptRoom:
        data = catalog.find_requested(model, config)
        window = 0 if data is None else data.context_tokens
        return PromptRoom.for_window(window, config.profile, config.narrator_room_bytes)

    return choose


async def register_service(wiring: ServiceContainer) -> None:
    """Connect to the gateway and the scenario service, local or remote, and register the session service."""
    gateway = wiring.get_local(ModelGateway) or RemoteModelGateway(wiring.get_channel("gateway"))
    scenarios = wiring.get_local(ScenarioSource) or RemoteScenarioSource(wiring.get_channel("scenarios"))
    store = SessionStore(await wiring.get_database())
    rulesets = RulesetCache(store.get_document, wiring.get_local(ProgramCache) or ProgramCache())
    config = wiring.config
    sessions = SessionManager(
        store,
        scenarios,
        rulesets,
        Narrator(
            gateway,
            default_provider=config.model_provider,
            seconds=config.narrator_seconds,
            choose_room=_room_chooser(config),
        ),
        message_limit(config.max_message_bytes),
        # A watcher occupies a call slot for long; turns must find a free one.
        watchers=max(1, config.max_concurrent_calls // 2),
    )
    wiring.on_stopping(sessions.aclose)
    sessions.round_scheduler.start_polling()
    workers = WorkerPool("futures")
    wiring.resources.callback(workers.close)
    servicer = SessionServicer(sessions, OutcomeForecaster(store, rulesets, workers))
    add_SessionServiceServicer_to_server(servicer, wiring.server)
    service = pb.DESCRIPTOR.services_by_name["SessionService"].full_name
    wiring.methods_without_deadline.add(f"/{service}/WatchSession")
    wiring.add_service_name(service)
