"""Batches: many prompts in one call, answered in any order, each with its own success or failure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.gateway.prompt_cache import OneFillsTheCache
from peripety.gateway.response_cache.answers import decode
from peripety.gateway.response_cache.key import key_of
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.model import Completion, GenerateRequest, ModelGateway
    from peripety.gateway.prompt_cache import Release
    from peripety.gateway.providers.registry import Answerer
    from peripety.gateway.response_cache import ResponseCache

__all__ = ["Batches", "Item", "ItemResult"]

_UNDER_WAY = 64
_MAX_ID_BYTES = 256


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt of a batch.

    Attributes:
        batch_id: the batch; a retry of the batch has the same id.
        item_id: unique in its batch.
        request: the request, or the error that makes it invalid.
    """

    batch_id: str
    item_id: str
    request: GenerateRequest | PeripetyError


@dataclass(frozen=True, slots=True)
class ItemResult:
    """Result of one prompt of a batch.

    Attributes:
        item_id: the item.
        outcome: the answer, or the error.
    """

    item_id: str
    outcome: Completion | PeripetyError


class Batches:
    """Runner of batches.

    Answers are stored in the response cache under the id of the batch. A client that repeats a batch after a
    lost connection gets the stored answers without further model calls. Failures are not stored.

    Prompts of a batch with a common prefix wait until the first of them has warmed the provider's prompt
    cache.

    Args:
        gateway: answers one prompt.
        cache: stores answers.
        answerer: returns the model and the credential that would answer a request.
        release: returns when other requests can read what a model has cached.
        count_hit: called for each answer served from the cache, for which no model is called. Its second
            argument, the conversation, is always empty.
        under_way: the maximum number of items that are read and whose results are not consumed yet.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        cache: ResponseCache,
        answerer: Callable[[GenerateRequest], Answerer],
        release: Callable[[GenerateRequest], Release],
        count_hit: Callable[[Completion, None], None],
        under_way: int = _UNDER_WAY,
    ) -> None:
        self._gateway = gateway
        self._cache = cache
        self._answerer = answerer
        self._release = release
        self._count_hit = count_hit
        self._under_way = under_way

    async def answer(self, items: AsyncIterator[Item]) -> AsyncIterator[list[ItemResult]]:
        """Answer the items of one batch.

        Back-pressure: items are read only as fast as their results are consumed. Leaving the iteration early
        cancels all calls.

        Yields:
            The results that are ready, in any order.

        Raises:
            PeripetyError: any error that `items` raises.
        """
        room = asyncio.Semaphore(self._under_way)
        results: asyncio.Queue[ItemResult | None] = asyncio.Queue()
        work = asyncio.create_task(self._work(items, room, results))
        try:
            while ready := await _ready(results):
                yield ready
                for _ in ready:
                    room.release()
            await work
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def _work(
        self, items: AsyncIterator[Item], room: asyncio.Semaphore, results: asyncio.Queue[ItemResult | None]
    ) -> None:
        """Put the result of each item into the queue, and None at the end."""
        seen: set[str] = set()
        gateway = OneFillsTheCache(self._gateway, self._release)
        try:
            async with following(items), asyncio.TaskGroup() as group:
                async for item in items:
                    await room.acquire()
                    problem = _problem_of(item.item_id, seen)
                    if problem is not None:
                        results.put_nowait(ItemResult(item.item_id, problem))
                        continue
                    seen.add(item.item_id)
                    group.create_task(self._answer(item, gateway, results))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            results.put_nowait(None)

    async def _answer(
        self, item: Item, gateway: ModelGateway, results: asyncio.Queue[ItemResult | None]
    ) -> None:
        try:
            outcome = await self._outcome(item, gateway)
        except PeripetyError as error:
            results.put_nowait(ItemResult(item.item_id, error))
        else:
            results.put_nowait(ItemResult(item.item_id, outcome))

    async def _outcome(self, item: Item, gateway: ModelGateway) -> Completion:
        if isinstance(item.request, PeripetyError):
            raise item.request
        key = _key(item, key_of(item.request, self._answerer(item.request)))
        stored = self._cache.at_hand(key) or await self._cache.look_up(key)
        if stored is not None:
            completion = decode(stored.data)
            self._count_hit(completion, None)
            return completion
        completion = await gateway.generate(item.request)
        # Stored before it is sent, so it is found again even if the client has disconnected.
        await self._cache.write(key, self._cache.keep(key, completion))
        return completion


async def _ready(results: asyncio.Queue[ItemResult | None]) -> list[ItemResult]:
    """Wait for a result, and return all that are ready; an empty list at the end."""
    ready: list[ItemResult] = []
    while not ready or not results.empty():
        result = await results.get()
        if result is None:
            # Put back: the end marker is read again after these results are consumed.
            if ready:
                results.put_nowait(None)
            break
        ready.append(result)
    return ready


def _problem_of(item_id: str, seen: set[str]) -> PeripetyError | None:
    if not 0 < len(item_id.encode()) <= _MAX_ID_BYTES:
        return InvalidArgumentError(f".item_id: must have 1 to {_MAX_ID_BYTES} bytes")
    if item_id in seen:
        return InvalidArgumentError(
            f".item_id: duplicate in this call: '{item_id}'; use a unique id for each item",
            code="DUPLICATE_ITEM",
        )
    return None


def _key(item: Item, asked: str) -> str:
    """Return the cache key of an answer: its place in the batch and the request.

    A changed request is a new item.
    """
    return sha256(f"{item.batch_id}\n{asked}\n{item.item_id}".encode()).hexdigest()
