"""Batches beside an event loop: bounded both ways, and over when nobody wants more."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from peripety.scenario.batch import BatchOptions
from peripety.scenario.batch.pipeline import validate_stream
from peripety.scenario.batch.validator import FairThreadPool
from support.scenario.batches import BYTES, DICE, EASY, GOOD, WRONG, named, playing_otherwise, verdicts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.core.concurrency import Executor
    from peripety.scenario.batch import DocumentVerdict


FOUR = [("good", GOOD), ("easy", EASY), ("wrong", WRONG), ("bytes", BYTES)]


@pytest.fixture
def threads() -> Iterator[FairThreadPool]:
    with FairThreadPool(2) as threads:
        yield threads


async def given(*messages: list[tuple[str, bytes]]) -> AsyncIterator[list[tuple[str, bytes]]]:
    for message in messages:
        yield message


async def all_of(
    found: AsyncIterator[list[tuple[str, DocumentVerdict]]],
) -> list[tuple[str, DocumentVerdict]]:
    return [verdict async for some in found for verdict in some]


@pytest.mark.parametrize("messages", [[FOUR], [FOUR[:1], [], FOUR[1:]], [[each] for each in FOUR]])
async def test_the_verdicts_are_those_of_any_other_batch(
    threads: FairThreadPool,
    messages: list[list[tuple[str, bytes]]],
) -> None:
    found = await all_of(validate_stream(given(*messages), DICE, threads))
    assert sorted(name for name, _ in found) == sorted(name for name, _ in FOUR)
    assert dict(found) == verdicts(FOUR, DICE)


async def test_no_documents_are_no_verdicts(threads: FairThreadPool) -> None:
    assert not await all_of(validate_stream(given(), DICE, threads))


async def test_no_more_is_read_than_is_taken(threads: FairThreadPool) -> None:
    read = 0

    async def endless() -> AsyncIterator[list[tuple[str, bytes]]]:
        nonlocal read
        while True:
            read += 1
            yield [(f"{read}.{index}", b"{}") for index in range(100)]

    async with aclosing(validate_stream(endless(), BatchOptions(), threads)) as found:  # type: ignore[type-var]  # a generator
        await anext(found)
        before = -1
        while read != before:
            before = read
            await asyncio.sleep(0.03)
        assert 0 < read < 25
        await anext(found)


async def test_a_batch_that_nobody_follows_any_more_begins_nothing(
    threads: FairThreadPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = []
    release = threading.Event()

    async def counting(name: str, worker: Executor) -> None:
        played.append(name)
        await worker.run(release.wait, 30)

    playing_otherwise(monkeypatch, counting)
    documents = [("wrong", WRONG), *((name, named(name)) for name in map(str, range(100)))]
    async with aclosing(validate_stream(given(documents), DICE, threads)) as found:  # type: ignore[type-var]  # a generator
        await anext(found)
    release.set()
    assert len(played) <= 2
    assert dict(await all_of(validate_stream(given(FOUR), DICE, threads))).keys() == dict(FOUR).keys()
    assert len(played) <= 2 + len(FOUR)


async def test_what_the_source_raises_ends_the_batch_at_once(
    threads: FairThreadPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    async def stuck(_name: str, worker: Executor) -> None:
        await worker.run(release.wait, 30)

    async def broken() -> AsyncIterator[list[tuple[str, bytes]]]:
        yield [("stuck", GOOD)]
        raise OSError("gone")

    playing_otherwise(monkeypatch, stuck)
    with pytest.raises(OSError, match="gone"):
        await all_of(validate_stream(broken(), DICE, threads))
    release.set()


async def test_what_the_source_raises_while_verdicts_are_taken_is_raised_too(threads: FairThreadPool) -> None:
    taken = asyncio.Event()

    async def broken() -> AsyncIterator[list[tuple[str, bytes]]]:
        yield [("a", b"{}")]
        await taken.wait()
        raise OSError("gone")

    found = validate_stream(broken(), DICE, threads)
    await anext(found)
    taken.set()
    await asyncio.sleep(0.02)
    with pytest.raises(OSError, match="gone"):
        await anext(found)
