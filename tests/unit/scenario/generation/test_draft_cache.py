"""Draft cache: returns earlier results for equal orders only, and never failed ones."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import Finding, InvalidArgumentError, Severity
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import UsageTotal
from peripety.scenario.generation import draft_cache as drafts_module
from peripety.scenario.generation.draft_cache import DraftCache
from peripety.scenario.types import (
    GenerationLimits,
    GenerationOrder,
    Progress,
    ProgressStage,
    SpecGenerated,
    SpecGenerationFailed,
    ValidationLevel,
)
from support.engine.specs import chance
from support.gateway.fake_gateway import SPENT
from support.scenario.batches import FEWEST, certified

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.storage.database import Database
    from peripety.scenario.types import GenerationEvent


ORDER = GenerationOrder("alpha wanes", seed=3)
BEGUN = Progress(ProgressStage.AUTHORING, "asking", 0.0)
WARNINGS = (Finding("CODE", "/a", "odd", Severity.WARNING),)
DONE = SpecGenerated(b'{"a":1}', WARNINGS, 2, SPENT, "p/m", without_model=False)
FAILED = SpecGenerationFailed(WARNINGS, 4, SPENT)


class Writer:
    """Ends every order in the same way, and remembers the orders."""

    def __init__(self, last: SpecGenerated | SpecGenerationFailed = DONE) -> None:
        self.orders: list[GenerationOrder] = []
        self.last = last
        self.begun = asyncio.Event()
        self.pause = asyncio.Event()
        self.pause.set()

    async def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        self.orders.append(order)
        self.begun.set()
        yield BEGUN
        await self.pause.wait()
        yield self.last


async def written(drafts: DraftCache, order: GenerationOrder = ORDER) -> list[GenerationEvent]:
    return [event async for event in drafts.generate(order)]


def again(done: SpecGenerated) -> SpecGenerated:
    return replace(done, spent=UsageTotal(), from_cache=True)


async def test_the_same_order_again_gets_what_was_written_and_asks_nobody(database: Database) -> None:
    writer = Writer()
    assert await written(DraftCache(writer, database, "p/m")) == [BEGUN, DONE]
    assert await written(DraftCache(writer, database, "p/m")) == [again(DONE)]
    assert len(writer.orders) == 1


async def test_a_certificate_comes_back_as_it_was(database: Database) -> None:
    done = replace(DONE, certificate=await certified(chance(0.5), FEWEST))
    drafts = DraftCache(Writer(done), database, "p/m")
    await written(drafts)
    assert await written(drafts) == [again(done)]


OTHERS: dict[str, Any] = {
    "description": "alpha waxes",
    "seed": None,
    "model": "p/other",
    "level": ValidationLevel.SCHEMA,
    "limits": GenerationLimits(budget=Budget(max_calls=1)),
    "language": "xa",
}


def test_every_field_of_an_order_was_thought_of() -> None:
    assert {field.name for field in fields(GenerationOrder)} == {*OTHERS, "refresh"}


@pytest.mark.parametrize("field", OTHERS)
async def test_another_order_is_written_anew(database: Database, field: str) -> None:
    drafts = DraftCache(Writer(), database, "p/m")
    await written(drafts)
    assert await written(drafts, replace(ORDER, **{field: OTHERS[field]})) == [BEGUN, DONE]


async def test_another_configured_model_writes_anew_where_the_order_names_none(database: Database) -> None:
    named = replace(ORDER, model="p/m")
    for order in (ORDER, named):
        await written(DraftCache(Writer(), database, "p/m"), order)
    other = DraftCache(Writer(), database, "p/other")
    assert await written(other) == [BEGUN, DONE]
    assert await written(other, named) == [again(DONE)]


@pytest.mark.parametrize(
    ("name", "other"),
    [("__version__", "0"), ("ENGINE_VERSION", "0"), ("load_prompts", dict), ("answer_schema", dict)],
)
async def test_another_version_of_the_program_of_prompts_or_of_the_schema_writes_anew(
    database: Database,
    name: str,
    other: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await written(DraftCache(Writer(), database, "p/m"))
    monkeypatch.setattr(drafts_module, name, other)
    drafts_module._fingerprint.cache_clear()
    try:
        assert await written(DraftCache(Writer(), database, "p/m")) == [BEGUN, DONE]
    finally:
        drafts_module._fingerprint.cache_clear()


async def test_to_refresh_writes_anew_and_keeps_that(database: Database) -> None:
    newer = replace(DONE, document=b'{"a":2}')
    await written(DraftCache(Writer(), database, "p/m"))
    drafts = DraftCache(Writer(newer), database, "p/m")
    assert await written(drafts, replace(ORDER, refresh=True)) == [BEGUN, newer]
    assert await written(drafts) == [again(newer)]


@pytest.mark.parametrize(
    "last",
    [FAILED, replace(DONE, without_model=True), replace(DONE, model="scripted/m")],
)
async def test_what_failed_and_what_rules_or_a_script_wrote_is_not_kept(
    database: Database,
    last: SpecGenerated | SpecGenerationFailed,
) -> None:
    writer = Writer(last)
    drafts = DraftCache(writer, database, "p/m")
    for _ in range(2):
        assert await written(drafts) == [BEGUN, last]
    assert len(writer.orders) == 2


async def test_equal_orders_at_the_same_time_are_written_once(database: Database) -> None:
    writer = Writer()
    writer.pause.clear()
    drafts = DraftCache(writer, database, "p/m")
    first, second = (asyncio.create_task(written(drafts)) for _ in range(2))
    await writer.begun.wait()
    writer.pause.set()
    assert await first == [BEGUN, DONE]
    assert await second == [again(DONE)]
    assert len(writer.orders) == 1


async def test_whoever_waited_for_somebody_who_left_has_it_written(database: Database) -> None:
    writer = Writer()
    writer.pause.clear()
    drafts = DraftCache(writer, database, "p/m")
    first, *others = (asyncio.create_task(written(drafts)) for _ in range(3))
    await writer.begun.wait()
    first.cancel()
    await asyncio.wait([first])
    writer.pause.set()
    assert sorted(map(len, await asyncio.gather(*others))) == [1, 2]
    assert len(writer.orders) == 2


async def test_whoever_waited_for_an_order_that_failed_has_it_written(database: Database) -> None:
    writer = Writer(FAILED)
    drafts = DraftCache(writer, database, "p/m")
    for events in await asyncio.gather(written(drafts), written(drafts)):
        assert events == [BEGUN, FAILED]


async def test_only_the_newest_are_kept(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts_module, "_CAPACITY", 2)
    drafts = DraftCache(Writer(), database, "p/m", now=count().__next__)
    for seed in (1, 2, 3):
        await written(drafts, replace(ORDER, seed=seed))
    found = [(await written(drafts, replace(ORDER, seed=seed)))[0] for seed in (3, 2, 1)]
    assert found == [again(DONE), again(DONE), BEGUN]


async def test_an_order_that_is_wrong_is_refused_before_anything_is_looked_up(database: Database) -> None:
    with pytest.raises(InvalidArgumentError):
        await written(DraftCache(Writer(), database, "p/m"), replace(ORDER, seed=-1))
