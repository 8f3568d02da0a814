from __future__ import annotations

import asyncio

import pytest

from peripety.core.concurrency import shield_until_done


async def test_work_that_must_end_ends_however_often_its_caller_is_cancelled() -> None:
    may_end = asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        await may_end.wait()
        done.append("work")

    caller = asyncio.create_task(shield_until_done(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done == ["work"]
