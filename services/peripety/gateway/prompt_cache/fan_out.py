"""Cache warming for requests with a common prefix: one fills the prompt cache before the others read it."""

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
    """Time from which others can read what a request has written to the cache."""

    AT_ONCE = "at once"
    """No wait."""
    AT_FIRST_EVENT = "at first event"
    """When its answer starts."""
    AT_END = "at end"
    """When its answer is complete."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one of many requests.

    Attributes:
        index: index of the request, from 0.
        result: the answer, or the error.
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
    """`ModelGateway` for batches: of the requests with a common prefix, the first one runs alone.

    The others wait until its cache entry is readable. If it fails before that, or its caller leaves, the next
    one takes its place. The prefix consists of the model, the system text and the tools; requests without
    text and tools do not wait.

    Args:
        gateway: the wrapped gateway.
        release: returns when the cache of a request's model becomes readable.
    """

    def __init__(self, gateway: ModelGateway, release: Callable[[GenerateRequest], Release]) -> None:
        self._gateway = gateway
        self._release = release
        self._filled: dict[str, asyncio.Future[bool]] = {}

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request."""
        return await completion_of(self.stream(request))

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request, after the wait for a warm cache."""
        beginning, release = beginning_of(request), self._release(request)
        if beginning is None or release is Release.AT_ONCE:
            events = self._gateway.stream(request)
        else:
            while (filled := self._filled.get(beginning)) is not None:
                # A waiting caller may be cancelled; the others still wait for the same future.
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
    """Send many requests; of those with a common prefix, the first one runs alone until the cache is warm.

    A caller that may leave early must wrap the iteration in `peripety.gateway.streams.following`, which
    closes all calls.

    Args:
        gateway: the gateway.
        requests: the requests.
        release: when the cache of their model becomes readable.
        at_once: the maximum number of waiting and running requests.

    Yields:
        The results in order of completion.
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
