"""The deadline and the request id of a call, as domain code sees them."""

from __future__ import annotations

import asyncio

import pytest

from peripety.core import call_context
from peripety.errors import DeadlineError


def test_outside_a_call_there_is_neither_deadline_nor_request_id() -> None:
    assert call_context.call_deadline() is None
    assert call_context.remaining() is None
    assert call_context.request_id() is None


async def test_a_task_started_in_a_call_belongs_to_it() -> None:
    async def look() -> tuple[str | None, float | None]:
        return call_context.request_id(), call_context.remaining()

    call_context.begin_call(request_id="abc", timeout=5.0)
    request_id, remaining = await asyncio.create_task(look())
    assert request_id == "abc"
    assert remaining == pytest.approx(5.0, abs=0.5)


async def test_a_call_started_in_a_task_does_not_reach_its_parent() -> None:
    async def call() -> None:
        call_context.begin_call(request_id="abc", timeout=5.0)

    await asyncio.create_task(call())
    assert call_context.request_id() is None


async def test_remaining_time_is_never_negative() -> None:
    call_context.begin_call(request_id=None, timeout=-1.0)
    assert call_context.remaining() == 0


async def test_a_bounded_block_sees_the_shorter_of_its_limit_and_the_call() -> None:
    call_context.begin_call(request_id=None, timeout=100.0)
    async with call_context.timeout_at_deadline(1.0):
        assert call_context.remaining() == pytest.approx(1.0, abs=0.5)
    assert call_context.remaining() == pytest.approx(100.0, abs=0.5)
    async with call_context.timeout_at_deadline(1000.0):
        assert call_context.remaining() == pytest.approx(100.0, abs=0.5)


async def test_a_block_that_takes_too_long_ends_with_a_deadline_error() -> None:
    with pytest.raises(DeadlineError, match="deadline exceeded after"):
        async with call_context.timeout_at_deadline(0.01):
            await asyncio.Event().wait()


async def test_a_block_without_any_limit_runs_to_its_end() -> None:
    async with call_context.timeout_at_deadline(None):
        assert call_context.call_deadline() is None


async def test_a_timeout_of_the_block_itself_is_not_taken_for_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with call_context.timeout_at_deadline(10.0):
            raise TimeoutError


async def test_a_cancellation_from_outside_stays_a_cancellation() -> None:
    async def work() -> None:
        async with call_context.timeout_at_deadline(10.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
