"""Many requests that begin alike: one of them fills the prompt cache, then the others read it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from peripety.errors import PeripetyError
from peripety.gateway.model import Completion, FallingBack
from peripety.gateway.models import CacheKind
from peripety.gateway.streams import completion_of, following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.gateway.model import GatewayEvent, GenerateRequest, ModelGateway
    from peripety.gateway.models import CacheRules

__all__ = ["Outcome", "Release", "fan_out", "release_of"]


class Release(Enum):
    """When what one request has written to the cache can be read by others."""

    AT_ONCE = "at once"
    """Nothing is written: there is nothing to wait for."""
    AT_FIRST_EVENT = "at first event"
    AT_END = "at end"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one of many requests went.

    Attributes:
        index: which request, from 0.
        result: the answer, or why there is none.
    """

    index: int
    result: Completion | PeripetyError


def release_of(rules: CacheRules) -> Release:
    """Return when others can read what a request to a model has written."""
    match rules.kind:
        case CacheKind.NONE:
            return Release.AT_ONCE
        case CacheKind.BREAKPOINTS:
            return Release.AT_FIRST_EVENT
        case _:
            return Release.AT_END


async def fan_out(
    gateway: ModelGateway,
    requests: Sequence[GenerateRequest],
    *,
    release: Release = Release.AT_FIRST_EVENT,
    at_once: int = 16,
) -> AsyncIterator[Outcome]:
    """Ask many requests whose prompts begin alike.

    The first goes alone until what it has written to the cache can be read; then the others go. When it fails
    before that, the next one takes its place. Who leaves early does so inside of
    `peripety.gateway.streams.following`: all calls that are under way are then closed.

    Args:
        gateway: who is asked.
        requests: what is asked.
        release: when the cache can be read.
        at_once: the most calls under way at a time.

    Yields:
        Every outcome, as it comes in.
    """
    came_in: asyncio.Queue[Outcome | None] = asyncio.Queue()
    asking = asyncio.create_task(_ask_all(_Asking(gateway, release, came_in), requests, at_once))
    asking.add_done_callback(lambda _: came_in.put_nowait(None))
    try:
        while (outcome := await came_in.get()) is not None:
            yield outcome
        await asking
    finally:
        asking.cancel()
        await asyncio.wait([asking])


async def _ask_all(asking: _Asking, requests: Sequence[GenerateRequest], at_once: int) -> None:
    """Ask one after the other until the cache is filled, then all others."""
    free = asyncio.Semaphore(at_once)
    filled = asking.release is Release.AT_ONCE
    async with asyncio.TaskGroup() as tasks:
        for index, request in enumerate(requests):
            await free.acquire()
            fills = asyncio.get_running_loop().create_future()
            tasks.create_task(asking.ask(index, request, fills)).add_done_callback(lambda _: free.release())
            filled = filled or await fills


@dataclass(frozen=True, slots=True)
class _Asking:
    gateway: ModelGateway
    release: Release
    came_in: asyncio.Queue[Outcome | None]

    async def ask(self, index: int, request: GenerateRequest, fills: asyncio.Future[bool]) -> None:
        """Ask, and say as soon as it is known whether that has filled the cache."""
        result: Completion | PeripetyError
        try:
            result = await completion_of(self._watched(request, fills))
        except PeripetyError as error:
            result = error
        if not fills.done():
            fills.set_result(isinstance(result, Completion))
        self.came_in.put_nowait(Outcome(index, result))

    async def _watched(
        self, request: GenerateRequest, fills: asyncio.Future[bool]
    ) -> AsyncIterator[GatewayEvent]:
        async with following(self.gateway.stream(request)) as events:
            async for event in events:
                answers = not isinstance(event, FallingBack)
                if self.release is Release.AT_FIRST_EVENT and answers and not fills.done():
                    fills.set_result(True)
                yield event
