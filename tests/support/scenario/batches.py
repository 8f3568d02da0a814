"""Batches and certificates of small scenarios."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety.certification.certificate import build_certificate
from peripety.certification.options import CertificateOptions, DryRunOptions
from peripety.core.concurrency import WorkerPool, closing
from peripety.core.storage.database import Database
from peripety.scenario import batch
from peripety.scenario.admission import ScenarioRegistrar
from peripety.scenario.batch import validator
from peripety.scenario.registry import ProgramCache, ScenarioRegistry
from peripety.scenario.types import ValidationLevel
from support.engine.specs import action, as_bytes, at_most, chance, event, program, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    import pytest

    from peripety.certification.types import Certificate
    from peripety.engine import ValidationResult
    from peripety.engine.executor import Executor
    from peripety.scenario.batch import BatchOptions, DocumentVerdict
    from peripety.scenario.types import RegistrationEvent


DICE = batch.BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64))

CERTIFIED = batch.BatchOptions(
    ValidationLevel.CERTIFICATE,
    DICE.dry_run,
    CertificateOptions(("idle", "random"), max_runs=64),
)

GOOD = as_bytes(chance(0.6))
EASY = as_bytes(chance(0.2, min_fail_rate=0.9))
WRONG = as_bytes(spec(seed="seven"))
BYTES = b"\xff\x00"


def named(name: str) -> bytes:
    """A good document like no other."""
    return as_bytes({**chance(0.6), "name": name})


def name_of(checked: ValidationResult) -> str:
    """Return the name that `named` received."""
    assert checked.program is not None
    name: str = checked.program.spec["name"]
    return name


def spaced(data: bytes, spaces: int) -> bytes:
    """The same content in other bytes."""
    return json.dumps(json.loads(data), indent=spaces).encode()


def verdicts(
    documents: list[tuple[Any, bytes]],
    options: BatchOptions,
    **more: Any,
) -> dict[Any, DocumentVerdict]:
    """Return the verdict of a batch on each document, in the order of the documents, not of the verdicts."""
    found = list(batch.validate(documents, options, **more))
    assert len(found) == len(documents)
    said = dict(found)
    return {key: said[key] for key, _ in documents}


def playing_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    otherwise: Callable[[str, Executor], Coroutine[None, None, DocumentVerdict | None]],
) -> None:
    """Have something else done with documents that are to be played; they are when it gives nothing."""

    evaluate = validator.evaluate_compiled

    async def played(checked: ValidationResult, options: BatchOptions, worker: Executor) -> DocumentVerdict:
        done = await otherwise(name_of(checked), worker)
        return done or await evaluate(checked, options, worker)

    monkeypatch.setattr(validator, "evaluate_compiled", played)


WORKERS = WorkerPool()


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


Json = dict[str, Any]
EVERYBODY = CertificateOptions(max_runs=64)
FEWEST = CertificateOptions(("idle", "random", "greedy"), max_runs=64)
"""Options that the reference core runs in less than a second; without the planner, which takes longer."""


def contest(**parts: Any) -> Json:
    """A short scenario in which choices matter and nothing is wrong; `parts` replace its sections."""
    blow = event("blow", [{"op": "dec", "path": "state.a", "value": 3}])
    swell = event("swell", [{"op": "inc", "path": "state.c", "value": 2}])
    return spec(
        **{
            "state": {"a": 4, "b": 0, "c": 0},
            "actions": [
                action("shore", [{"op": "inc", "path": "state.a", "value": 2}]),
                action(
                    "press",
                    [
                        {"op": "inc", "path": "state.b", "value": 1},
                        {"op": "dec", "path": "state.a", "value": 1},
                    ],
                ),
            ],
            "random_events": [blow, swell],
            "loss_conditions": [
                at_most("gone", "state.a", 0),
                {"id": "flooded", "when": {">=": [{"var": "state.c"}, 5]}},
            ],
            "win_conditions": [{"id": "full", "when": {">=": [{"var": "state.b"}, 4]}}],
            "negativity_budget": {
                "min_fail_rate": 0.1,
                "decay_per_turn": {"state.a": 0.5},
                "max_positive_drift": 0.5,
            },
            "horizon": 6,
            **parts,
        },
    )


async def certified(value: Json, options: CertificateOptions = FEWEST) -> Certificate:
    """The certificate of a scenario."""
    return await build_certificate(program(value), options, WORKERS)


def certified_alone(value: Json, options: CertificateOptions = FEWEST) -> Certificate:
    """The same in a loop of its own."""
    return asyncio.run(certified(value, options))
