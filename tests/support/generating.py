"""A scenario service on a free port that asks the scripted LLM, and what a client hears of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from peripety import engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.core.config import ProviderName
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.simulator import Simulator
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.providers import PROVIDERS, config_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub
    from peripety.core.config import Config
    from peripety.llmsim.script.types import Script
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import SimRequest


ORIGINAL_PROVIDERS = tuple(
    spoken for spoken in PROVIDERS if spoken.name in {ProviderName.ANTHROPIC, ProviderName.OPENAI}
)

# Those who look ahead take minutes without the native core.
LEVEL = pb.VALIDATION_LEVEL_CERTIFICATE if engine.BACKEND == "native" else pb.VALIDATION_LEVEL_DRY_RUN


class Listening(Simulator):
    """A scripted LLM that keeps whole requests."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.requests: list[SimRequest] = []

    def begin(self, request: SimRequest) -> Exchange:
        self.requests.append(request)
        return super().begin(request)


@dataclass(frozen=True)
class Heard:
    """The events of writing a specification."""

    events: list[pb.GenerateScenarioResponse]

    @property
    def kinds(self) -> list[str]:
        """What happened, but for progress."""
        kinds = [event.WhichOneof("event") for event in self.events]
        return [kind for kind in kinds if kind and kind != "progress"]

    @property
    def completed(self) -> pb.GenerateScenarioResponse.Completed:
        assert self.events[-1].HasField("completed"), self.events[-1]
        return self.events[-1].completed

    @property
    def rejected(self) -> pb.GenerateScenarioResponse.Rejected:
        assert self.events[-1].HasField("rejected"), self.events[-1]
        return self.events[-1].rejected

    @property
    def told(self) -> list[set[str]]:
        """The codes of what was found after each answer with something wrong."""
        return [
            {finding.code for finding in event.findings.findings}
            for event in self.events
            if event.HasField("findings")
        ]


@dataclass(frozen=True)
class Author:
    """The service, and the model that it asks."""

    stub: ScenarioServiceAsyncStub
    model: Listening

    async def writes(self, **fields: Any) -> Heard:
        """All events of one order."""
        return await heard(self.stub, **{"description": "alpha wanes", "seed": 7, **fields})


async def heard(stub: ScenarioServiceAsyncStub, **fields: Any) -> Heard:
    """All events of one order."""
    request = pb.GenerateScenarioRequest(**{"request_id": str(uuid4()), "level": LEVEL, **fields})
    return Heard([event async for event in stub.GenerateScenario(request)])


@asynccontextmanager
async def scenario_service(config: Config) -> AsyncIterator[ScenarioServiceAsyncStub]:
    """A service in this process that asks whom its configuration names, until the block ends."""
    async with serve(config, services={"gateway", "scenarios"}) as app, open_channel(app.address) as channel:
        yield ScenarioServiceStub(channel)


@asynccontextmanager
async def authoring(home: Path, spoken: Any, scenario: Script) -> AsyncIterator[Author]:
    """Serve until the block ends.

    Args:
        home: where the service keeps its database.
        spoken: the provider whose protocol the scripted LLM speaks.
        scenario: what it says.
    """
    model = Listening(scenario)
    with serve_in_thread(model) as upstream:
        database = f"sqlite:///{home / 'test.db'}"
        config = config_of(spoken, upstream.url, database_url=database, listen="127.0.0.1:0")
        async with scenario_service(config) as stub:
            yield Author(stub, model)
    model.close()
