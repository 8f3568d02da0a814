"""Scenarios of known odds, and what it takes to compile and to read them."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.concurrency import WorkerPool, closing
from peripety.core.storage.database import Database
from peripety.scenario.registration import ScenarioRegistrar
from peripety.scenario.registry import ProgramCache, ScenarioRegistry
from peripety.scenario.types import DryRunOptions
from support.specs import at_most, event, never, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.engine import Program
    from peripety.scenario.types import RegistrationEvent


Json = dict[str, Any]
WORKERS = WorkerPool()


def chance(rate: float, **budget: Any) -> Json:
    """A scenario that is lost with exactly this chance, in as few turns as weights allow."""
    turns = math.ceil(math.log(1 - rate) / math.log(1 - 0.3))
    weight = 1 - (1 - rate) ** (1 / turns)
    strike = event("strike", [{"op": "set", "path": "state.a", "value": 0}], weight=weight)
    return spec(
        state={"a": 1},
        actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
        random_events=[strike],
        loss_conditions=[at_most("gone", "state.a", 0), never("never")],
        negativity_budget={"min_fail_rate": 0.25, **budget},
        horizon=turns,
    )


def siege(**budget: Any) -> Json:
    """A scenario whose numbers decide: what falls by itself and by chance, and what helps."""
    return spec(
        state={"a": 20, "b": 0},
        actions=[{"id": "wait", "params": {}, "preconditions": {}, "effects": []}],
        random_events=[
            event("blow", [{"op": "dec", "path": "state.a", "value": 4}], weight=0.2),
            event("swell", [{"op": "inc", "path": "state.b", "value": 3}], weight=0.2),
            event("balm", [{"op": "inc", "path": "state.a", "value": 2}], weight=0.1),
        ],
        loss_conditions=[
            at_most("a_gone", "state.a", 0),
            {"id": "b_full", "when": {">=": [{"var": "state.b"}, 12]}},
        ],
        negativity_budget={"decay_per_turn": {"state.a": 0.5}, **({"min_fail_rate": 0.25} | budget)},
        horizon=15,
    )


def document(value: Json) -> bytes:
    """A scenario as bytes."""
    return json.dumps(value).encode()


def program(value: Json) -> Program:
    """A scenario, compiled."""
    return engine.compile(document(value))


@asynccontextmanager
async def opened_registry(database_url: str) -> AsyncIterator[ScenarioRegistry]:
    """A registry in a database."""
    database = await Database.open(database_url)
    try:
        yield ScenarioRegistry(database)
    finally:
        await database.close()


async def compiling(
    registry: ScenarioRegistry,
    data: bytes,
    options: DryRunOptions | None = None,
    **more: Any,
) -> list[RegistrationEvent]:
    """Everything that happens while a document is compiled."""
    compiler = ScenarioRegistrar(registry, ProgramCache(), WORKERS)
    async with closing(compiler.register(data, options or DryRunOptions(), **more)) as events:
        return [event async for event in events]


def compiled_alone(data: bytes, options: DryRunOptions | None = None, **more: Any) -> list[RegistrationEvent]:
    """The same in a loop and a registry of its own."""

    async def run() -> list[RegistrationEvent]:
        with tempfile.TemporaryDirectory() as directory:
            async with opened_registry(f"sqlite:///{directory}/test.db") as registry:
                return await compiling(registry, data, options, **more)

    return asyncio.run(run())
