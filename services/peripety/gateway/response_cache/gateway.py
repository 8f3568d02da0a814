"""Caching gateway: response cache and single-flight in front of another gateway."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from peripety import context
from peripety.errors import InternalError, UnavailableError
from peripety.gateway.model import Completed, Completion, GatewayEvent, GenerateRequest, ResponseCacheMode
from peripety.gateway.model.replay import completion_of
from peripety.gateway.response_cache.answers import may_be_stored, replay
from peripety.gateway.response_cache.flight import (
    Failed,
    Flight,
    Found,
    HandedOverError,
    Landed,
    Progress,
    ProgressLostError,
)
from peripety.gateway.response_cache.key import key_of
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.model import Budget, ModelGateway
    from peripety.gateway.providers.registry import Answerer
    from peripety.gateway.response_cache.cache import ResponseCache

__all__ = ["CachingModelGateway"]


class _Together(NamedTuple):
    """Key of a shared call.

    Attributes:
        key: cache key of the request.
        budget: budget of each request.
        conversation_id: the conversation whose budget it counts towards; None for none.
    """

    key: str
    budget: Budget | None
    conversation_id: str | None


class CachingModelGateway:
    """`ModelGateway` that sends equal requests once, if they opt in.

    Concurrent equal requests share one call if it counts towards the same budgets: a request with little
    budget left could truncate or end the call. A later caller joins it and gets its events from the first one
    on. If the call fails, its leader gets the error and the next caller retries. A caller that already
    received text follows the new answer if it starts with the same text; otherwise it gets the error too.

    Args:
        inner: the wrapped gateway.
        cache: stores answers.
        answerer: returns the model and account that would answer a request.
        count_hit: called for each answer without a model call, with its conversation.
    """

    def __init__(
        self,
        inner: ModelGateway,
        cache: ResponseCache,
        answerer: Callable[[GenerateRequest], Answerer],
        count_hit: Callable[[Completion, str | None], None] = lambda _completion, _conversation: None,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._answerer = answerer
        self._count_hit = count_hit
        self._flights: dict[_Together, Flight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream a stored, shared or new answer; see `ModelGateway.stream`."""
        events = self._shared(request) if _may_be_shared(request) else self._inner.stream(request)
        async with following(events):
            async for event in events:
                if isinstance(event, Completed) and event.completion.from_response_cache:
                    self._count_hit(event.completion, request.conversation_id)
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return a stored, shared or new answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

    async def aclose(self) -> None:
        """Cancel running calls, and wait until completed answers are stored."""
        self._closed = True
        for flight in self._flights.values():
            flight.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _shared(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        key = key_of(request, self._answerer(request))
        progress = Progress()
        failure: BaseException | None = None
        while True:
            try:
                async with following(self._answer(key, request)) as events:
                    async for event in events:
                        news = progress.advance(event)
                        if news is not None:
                            yield news
            except HandedOverError as handed_over:
                failure = handed_over.cause or failure
                if failure is not None and not progress.can_start_over():
                    raise failure from None
            except ProgressLostError:
                if failure is None:
                    raise
                raise failure from None
            else:
                return

    async def _answer(self, key: str, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer from memory, from a running call, or from a new one."""
        fresh = request.response_cache is ResponseCacheMode.REFRESH
        at_hand = None if fresh else self._cache.at_hand(key)
        if at_hand is not None:
            for event in replay(at_hand):
                yield event
            return
        together = _Together(key, request.budget, request.conversation_id)
        while (flight := self._flights.get(together)) is not None and flight.abandoned:
            async with context.bounded(None):
                await flight.over()
        if self._closed:
            raise _going_down()
        if flight is None:
            flight = self._flights[together] = Flight()
            task = flight.start(self._fly(flight, together, request, look_up=not fresh))
            self._tasks.add(task)
            task.add_done_callback(partial(self._forget, together, flight))
        async with following(flight.follow(fresh=fresh)) as events:
            async for event in events:
                yield event

    async def _fly(
        self, flight: Flight, together: _Together, request: GenerateRequest, *, look_up: bool
    ) -> None:
        # Each caller applies its own deadline; the call runs as long as one of them waits.
        context.enter_call(request_id=context.request_id(), timeout=None)
        key, stored = together.key, None
        try:
            found = await self._cache.look_up(key) if look_up else None
            if found is not None:
                flight.end(Found(found))
            else:
                completion = await self._call(flight, request)
                if may_be_stored(completion):
                    stored = self._cache.keep(key, completion)
                flight.end(Landed(completion))
        except asyncio.CancelledError:
            flight.end(Failed(_going_down()))
            raise
        except Exception as error:  # noqa: BLE001 - it is the leader's, who raises it
            flight.end(Failed(error))
        finally:
            del self._flights[together]
        if stored is not None:
            await self._cache.write(key, stored)

    def _forget(self, together: _Together, flight: Flight, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._flights.get(together) is flight:
            # A task that is cancelled before its first step executes none of its code.
            del self._flights[together]
            flight.end(Failed(_going_down()))

    async def _call(self, flight: Flight, request: GenerateRequest) -> Completion:
        completion: Completion | None = None
        async with following(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completion = event.completion
                else:
                    flight.release(event)
        if completion is None:
            raise InternalError("event stream ended without a Completed event")
        return completion


def _going_down() -> UnavailableError:
    return UnavailableError("gateway is shutting down; retry the request", code="SERVER_SHUTTING_DOWN")


def _may_be_shared(request: GenerateRequest) -> bool:
    """Return True if the caller opts in, and an answer can be reused for another caller.

    A caller's own check is code, and two checks cannot be compared for equality. An answer that passed one
    would be streamed to a caller whose check may reject it.
    """
    if request.schema is not None and request.schema.accept is not None:
        return False
    return request.response_cache is not ResponseCacheMode.OFF
