"""Many requests that begin alike: one of them fills the prompt cache, then the others read it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from peripety.errors import PeripetyError
from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import Completed, Completion, FallingBack
from peripety.gateway.model.replay import completion_of
from peripety.gateway.prompt_cache.prompt import beginning_of
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from peripety.gateway.catalogue import CacheRules
    from peripety.gateway.model import GatewayEvent, GenerateRequest, ModelGateway

__all__ = ["OneFillsTheCache", "Outcome", "Release", "fan_out", "release_of"]


class Release(Enum):
    """When others can read what a request has written to the cache."""

    AT_ONCE = "at once"
    """There is nothing to wait for."""
    AT_FIRST_EVENT = "at first event"
    """When its answer has begun."""
    AT_END = "at end"
    """When its answer is whole."""


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


class OneFillsTheCache:
    """Implements `ModelGateway` for the requests of a batch: of those that begin alike, the first goes alone.

    The others wait until what it has written to the cache can be read. When it fails before that, or its
    caller leaves, the next one takes its place. Alike are requests for the same model with the same system
    text and tools; those with neither wait for nobody.

    Args:
        gateway: who is asked.
        release: when the model of a request lets its cache be read.
    """

    def __init__(self, gateway: ModelGateway, release: Callable[[GenerateRequest], Release]) -> None:
        self._gateway = gateway
        self._release = release
        self._filled: dict[str, asyncio.Future[bool]] = {}

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, and wait for the whole answer."""
        return await completion_of(self.stream(request))

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, in turn."""
        beginning, release = beginning_of(request), self._release(request)
        if beginning is None or release is Release.AT_ONCE:
            events = self._gateway.stream(request)
        else:
            while (filled := self._filled.get(beginning)) is not None:
                # Who waits may leave; the others still wait for the same.
                if await asyncio.shield(filled):
                    break
            events = self._gateway.stream(request) if filled else self._filling(request, beginning, release)
        async with following(events):
            async for event in events:
                yield event

    async def _filling(
        self, request: GenerateRequest, beginning: str, release: Release
    ) -> AsyncIterator[GatewayEvent]:
        filled = self._filled[beginning] = asyncio.get_running_loop().create_future()
        try:
            async with following(self._gateway.stream(request)) as events:
                async for event in events:
                    begun = release is Release.AT_FIRST_EVENT and not isinstance(event, FallingBack)
                    if not filled.done() and (begun or isinstance(event, Completed)):
                        filled.set_result(True)
                    yield event
        finally:
            if not filled.done():
                del self._filled[beginning]
                filled.set_result(False)


async def fan_out(
    gateway: ModelGateway, requests: Sequence[GenerateRequest], release: Release, *, at_once: int = 16
) -> AsyncIterator[Outcome]:
    """Ask many requests; of those that begin alike, the first one goes alone until the cache is filled.

    Who leaves early does so inside of `peripety.gateway.streams.following`: all calls are then closed.

    Args:
        gateway: who is asked.
        requests: what is asked.
        release: when their model lets its cache be read.
        at_once: the most requests that wait or are under way at a time.

    Yields:
        Every outcome, as it comes in.
    """
    in_turn = OneFillsTheCache(gateway, lambda _: release)
    free = asyncio.Semaphore(at_once)
    came_in: asyncio.Queue[Outcome | None] = asyncio.Queue()

    async def ask(index: int) -> None:
        async with free:
            try:
                came_in.put_nowait(Outcome(index, await in_turn.generate(requests[index])))
            except PeripetyError as error:
                came_in.put_nowait(Outcome(index, error))

    async def ask_all() -> None:
        async with asyncio.TaskGroup() as tasks:
            for index in range(len(requests)):
                tasks.create_task(ask(index))

    asking = asyncio.create_task(ask_all())
    asking.add_done_callback(lambda _: came_in.put_nowait(None))
    try:
        while (outcome := await came_in.get()) is not None:
            yield outcome
        await asking
    finally:
        asking.cancel()
        await asyncio.wait([asking])
