"""Many prompts at once: answered in any order, each with its own success or failure."""

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
        batch_id: the batch; one that is sent again has the same.
        item_id: names the item in its batch.
        request: what is asked, or why that cannot be.
    """

    batch_id: str
    item_id: str
    request: GenerateRequest | PeripetyError


@dataclass(frozen=True, slots=True)
class ItemResult:
    """How one prompt of a batch went.

    Attributes:
        item_id: the item.
        outcome: its answer, or why there is none.
    """

    item_id: str
    outcome: Completion | PeripetyError


class Batches:
    """Answers batches of prompts.

    An answer is kept where stored answers are, under the id of its batch: whoever sends a batch again, after
    a connection was lost, asks no model for what was answered. Failures are not kept.

    Prompts of a batch that begin alike wait until the first of them has filled the provider's prompt cache.

    Args:
        gateway: answers one prompt.
        cache: keeps answers.
        answerer: says who would answer a request, and for whose account.
        release: when the model of a request lets others read what it has cached.
        count_hit: is told of each answer that was given to the same batch before, for which no model is
            called, and of its conversation, which is none.
        under_way: the most items of a batch that are read and whose results are not taken yet.
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

        Items are read only as fast as their results are taken. Leaving the iteration early ends all calls.

        Yields:
            The results that are ready, in any order.

        Raises:
            PeripetyError: what `items` raises.
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
        """Put the result of each item in the queue, and None at the end."""
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
        # Before it is sent: it is answered, whether or not the caller hears of it.
        await self._cache.write(key, self._cache.keep(key, completion))
        return completion


async def _ready(results: asyncio.Queue[ItemResult | None]) -> list[ItemResult]:
    """Wait for a result, and return all that are there; none at the end."""
    ready: list[ItemResult] = []
    while not ready or not results.empty():
        result = await results.get()
        if result is None:
            # It is found again when these results were taken.
            if ready:
                results.put_nowait(None)
            break
        ready.append(result)
    return ready


def _problem_of(item_id: str, seen: set[str]) -> PeripetyError | None:
    if not 0 < len(item_id.encode()) <= _MAX_ID_BYTES:
        return InvalidArgumentError(f".item_id must have 1 to {_MAX_ID_BYTES} bytes")
    if item_id in seen:
        return InvalidArgumentError(
            f".item_id '{item_id}' was used in this call already; name each item differently",
            code="DUPLICATE_ITEM",
        )
    return None


def _key(item: Item, asked: str) -> str:
    """Names an answer by its place in the batch and by what was asked: another question is another item."""
    return sha256(f"{item.batch_id}\n{asked}\n{item.item_id}".encode()).hexdigest()
