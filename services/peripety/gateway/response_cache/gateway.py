"""A gateway that remembers answers, in front of one that asks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from peripety import context
from peripety.errors import InternalError, UnavailableError
from peripety.gateway.model import Completed, Completion, GatewayEvent, GenerateRequest, ResponseCacheMode
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
from peripety.gateway.streams import completion_of, following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.model import Budget, ModelGateway
    from peripety.gateway.providers.registry import Answerer
    from peripety.gateway.response_cache.cache import ResponseCache

__all__ = ["CachingModelGateway"]


class _Together(NamedTuple):
    """What the requests have in common that share a call.

    Attributes:
        key: what is asked, and of whom.
        budget: what each of them may use.
        conversation_id: whose budget it counts towards; None for none.
    """

    key: str
    budget: Budget | None
    conversation_id: str | None


class CachingModelGateway:
    """Implements `ModelGateway`: asks each question once, for those who want that.

    Equal requests at the same time share one call, if it counts towards the same budgets: one that has little
    left may cut the answer short, or end the call. Whoever comes later joins it and gets its events from the
    first on. When it fails, its leader gets the error and the next caller asks again. A caller who was given
    text already follows the new answer if that begins with the same text, else it gets the error too.

    Args:
        inner: asks.
        cache: keeps answers.
        answerer: says who would answer a request, and for whose account.
        count_hit: is told of each answer for which no model was called, and of its conversation.
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
        """Ask, or remember, and follow the answer; see `ModelGateway.stream`."""
        events = self._shared(request) if _may_be_shared(request) else self._inner.stream(request)
        async with following(events):
            async for event in events:
                if isinstance(event, Completed) and event.completion.from_response_cache:
                    self._count_hit(event.completion, request.conversation_id)
                yield event

    async def generate(self, request: GenerateRequest) -> Completion:
        """Ask, or remember, and wait for the whole answer; see `ModelGateway.generate`."""
        return await completion_of(self.stream(request))

    async def aclose(self) -> None:
        """End the calls that are under way, and wait until what was answered is stored."""
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
        """The answer at hand, or the flight that is under way, or a new one."""
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
        # Each caller keeps to its own deadline; the call lasts as long as one of them waits.
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
            # A task that is cancelled before its first step runs nothing of its code.
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
            raise InternalError("A stream of events ended without its last one")
        return completion


def _going_down() -> UnavailableError:
    return UnavailableError("The gateway is going down; ask again", code="SERVER_SHUTTING_DOWN")


def _may_be_shared(request: GenerateRequest) -> bool:
    """Whether the caller wants it, and an answer to it can be an answer for somebody else.

    A caller's own check is code, and code has no name by which two checks could be told to be the same. An
    answer that passed one would be shown, delta by delta, to a caller whose check may refuse it.
    """
    if request.schema is not None and request.schema.accept is not None:
        return False
    return request.response_cache is not ResponseCacheMode.OFF
