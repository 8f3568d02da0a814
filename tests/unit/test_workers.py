"""Work of scenarios, on threads that nobody else waits for."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from peripety.scenarios.model import Compiled
from peripety.sim.schema import check
from peripety.workers import Workers
from support.scenarios import chance, compiling, document, opened_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.errors import Finding


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


async def test_work_that_never_ends_holds_up_neither_the_loop_nor_other_threads(workers: Workers) -> None:
    release = threading.Event()
    stuck = [asyncio.ensure_future(workers.run(release.wait)) for _ in range(64)]
    try:
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(lambda: "done") == "done"
        assert not any(work.done() for work in stuck)
    finally:
        release.set()
        await asyncio.gather(*stuck)


async def test_closing_waits_for_nothing(workers: Workers) -> None:
    release = threading.Event()
    stuck = [asyncio.ensure_future(workers.run(release.wait)) for _ in range(2)]
    waiting = asyncio.ensure_future(workers.run(release.wait))
    await asyncio.sleep(0)
    workers.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    assert await asyncio.gather(*stuck) == [True, True]


async def test_a_document_is_validated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []

    def counting(schema: Any, instance: Any) -> list[Finding]:
        checked.append(instance)
        return check(schema, instance)

    monkeypatch.setattr("peripety.sim.documents.check", counting)
    async with opened_registry(f"sqlite:///{tmp_path / 'test.db'}") as registry:
        events = await compiling(registry, document(chance(0.5)))
    assert isinstance(events[-1], Compiled)
    assert len(checked) == 1
