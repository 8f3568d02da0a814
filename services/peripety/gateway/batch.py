"""Batches: many prompts in one call, answered in any order, each with its own success or failure.

If the requests share a prefix, one of them fills the prompt cache before the others read it
(`WarmupGateway`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing
from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.gateway.models.model_data import CacheKind
from peripety.gateway.prompt_cache.prefix import prefix_key
from peripety.gateway.response_cache.caching_gateway import cache_key
from peripety.gateway.response_cache.tiers import decode_answer
from peripety.gateway.types.response import Completed, Completion, FallingBack, collect_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from peripety.gateway.models.model_data import CacheRules
    from peripety.gateway.providers.registry import AnswerSource
    from peripety.gateway.response_cache.tiers import ResponseCache
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent, ModelGateway


class WarmupPolicy(Enum):
    """Time from which others can read what a request has written to the cache."""

    AT_ONCE = "at once"
    """No wait."""
    AT_FIRST_EVENT = "at first event"
    """When its answer starts."""
    AT_END = "at end"
    """When its answer is complete."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Result of one of many requests.

    Attributes:
        index: index of the request, from 0.
        result: the answer, or the error.
    """

    index: int
    result: Completion | PeripetyError


def warmup_policy_of(rules: CacheRules) -> WarmupPolicy:
    """Return when others can read what a request to a model has written."""
    match rules.kind:
        case CacheKind.NONE:
            return WarmupPolicy.AT_ONCE
        case CacheKind.BREAKPOINTS:
            return WarmupPolicy.AT_FIRST_EVENT
        case _:
            return WarmupPolicy.AT_END


class WarmupGateway:
    """`ModelGateway` for batches: of the requests with a common prefix, the first one runs alone.

    The others wait until its cache entry is readable. If it fails before that, or its caller leaves, the next
    one takes its place. The prefix consists of the model, the system text and the tools; requests without
    text and tools do not wait.

    Args:
        gateway: the wrapped gateway.
        warmup_policy: returns when the cache of a request's model becomes readable.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        warmup_policy: Callable[[GenerateRequest], WarmupPolicy],
    ) -> None:
        self._gateway = gateway
        self._warmup_policy = warmup_policy
        self._warm_prefixes: dict[str, asyncio.Future[bool]] = {}

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the whole answer of a request."""
        return await collect_completion(self.stream(request))

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer of a request, after the wait for a warm cache."""
        beginning, release = prefix_key(request), self._warmup_policy(request)
        if beginning is None or release is WarmupPolicy.AT_ONCE:
            events = self._gateway.stream(request)
        else:
            while (filled := self._warm_prefixes.get(beginning)) is not None:
                # A waiting caller may be cancelled; the others still wait for the same future.
                if await asyncio.shield(filled):
                    break
            events = (
                self._gateway.stream(request) if filled else self._stream_first(request, beginning, release)
            )
        async with closing(events):
            async for event in events:
                yield event

    async def _stream_first(
        self,
        request: GenerateRequest,
        prefix: str,
        warmup_policy: WarmupPolicy,
    ) -> AsyncIterator[GatewayEvent]:
        filled = self._warm_prefixes[prefix] = asyncio.get_running_loop().create_future()
        try:
            async with closing(self._gateway.stream(request)) as events:
                async for event in events:
                    begun = warmup_policy is WarmupPolicy.AT_FIRST_EVENT and not isinstance(
                        event,
                        FallingBack,
                    )
                    if not filled.done() and (begun or isinstance(event, Completed)):
                        filled.set_result(True)
                    yield event
        finally:
            if not filled.done():
                del self._warm_prefixes[prefix]
                filled.set_result(False)


async def fan_out(
    gateway: ModelGateway,
    requests: Sequence[GenerateRequest],
    warmup_policy: WarmupPolicy,
    *,
    max_concurrency: int = 16,
) -> AsyncIterator[BatchOutcome]:
    """Send many requests; of those with a common prefix, the first one runs alone until the cache is warm.

    A caller that may leave early must wrap the iteration in `peripety.core.concurrency.closing`, which
    closes all calls.

    Args:
        gateway: the gateway.
        requests: the requests.
        warmup_policy: when the cache of their model becomes readable.
        max_concurrency: the maximum number of waiting and running requests.

    Yields:
        The results in order of completion.
    """
    in_turn = WarmupGateway(gateway, lambda _: warmup_policy)
    free = asyncio.Semaphore(max_concurrency)
    came_in: asyncio.Queue[BatchOutcome | None] = asyncio.Queue()

    async def ask(index: int) -> None:
        async with free:
            try:
                came_in.put_nowait(BatchOutcome(index, await in_turn.generate(requests[index])))
            except PeripetyError as error:
                came_in.put_nowait(BatchOutcome(index, error))

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


_MAX_IN_PROGRESS = 64
_MAX_ID_BYTES = 256


@dataclass(frozen=True, slots=True)
class BatchItem:
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
class BatchItemResult:
    """Result of one prompt of a batch.

    Attributes:
        item_id: the item.
        outcome: the answer, or the error.
    """

    item_id: str
    outcome: Completion | PeripetyError


class BatchRunner:
    """Runner of batches.

    Answers are stored in the response cache under the id of the batch. A client that repeats a batch after a
    lost connection gets the stored answers without further model calls. Failures are not stored.

    Prompts of a batch with a common prefix wait until the first of them has warmed the provider's prompt
    cache.

    Args:
        gateway: answers one prompt.
        cache: stores answers.
        answer_source: returns the model and the credential that would answer a request.
        warmup_policy: returns when other requests can read what a model has cached.
        count_hit: called for each answer served from the cache, for which no model is called. Its second
            argument, the conversation, is always empty.
        max_in_progress: the maximum number of items that are read and whose results are not consumed yet.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        cache: ResponseCache,
        answer_source: Callable[[GenerateRequest], AnswerSource],
        warmup_policy: Callable[[GenerateRequest], WarmupPolicy],
        count_hit: Callable[[Completion, None], None],
        max_in_progress: int = _MAX_IN_PROGRESS,
    ) -> None:
        self._gateway = gateway
        self._cache = cache
        self._answer_source = answer_source
        self._warmup_policy = warmup_policy
        self._count_hit = count_hit
        self._max_in_progress = max_in_progress

    async def run(self, items: AsyncIterator[BatchItem]) -> AsyncIterator[list[BatchItemResult]]:
        """Answer the items of one batch.

        Back-pressure: items are read only as fast as their results are consumed. Leaving the iteration early
        cancels all calls.

        Yields:
            The results that are ready, in any order.

        Raises:
            PeripetyError: any error that `items` raises.
        """
        room = asyncio.Semaphore(self._max_in_progress)
        results: asyncio.Queue[BatchItemResult | None] = asyncio.Queue()
        work = asyncio.create_task(self._process_items(items, room, results))
        try:
            while ready := await _wait_for_results(results):
                yield ready
                for _ in ready:
                    room.release()
            await work
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def _process_items(
        self,
        items: AsyncIterator[BatchItem],
        room: asyncio.Semaphore,
        results: asyncio.Queue[BatchItemResult | None],
    ) -> None:
        """Put the result of each item into the queue, and None at the end."""
        seen: set[str] = set()
        gateway = WarmupGateway(self._gateway, self._warmup_policy)
        try:
            async with closing(items), asyncio.TaskGroup() as group:
                async for item in items:
                    await room.acquire()
                    problem = _item_problem(item.item_id, seen)
                    if problem is not None:
                        results.put_nowait(BatchItemResult(item.item_id, problem))
                        continue
                    seen.add(item.item_id)
                    group.create_task(self._answer_item(item, gateway, results))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            results.put_nowait(None)

    async def _answer_item(
        self,
        item: BatchItem,
        gateway: ModelGateway,
        results: asyncio.Queue[BatchItemResult | None],
    ) -> None:
        try:
            outcome = await self._outcome_of(item, gateway)
        except PeripetyError as error:
            results.put_nowait(BatchItemResult(item.item_id, error))
        else:
            results.put_nowait(BatchItemResult(item.item_id, outcome))

    async def _outcome_of(self, item: BatchItem, gateway: ModelGateway) -> Completion:
        if isinstance(item.request, PeripetyError):
            raise item.request
        key = _answer_key(item, cache_key(item.request, self._answer_source(item.request)))
        stored = self._cache.get_local(key) or await self._cache.get(key)
        if stored is not None:
            completion = decode_answer(stored.data)
            self._count_hit(completion, None)
            return completion
        completion = await gateway.generate(item.request)
        # Stored before it is sent, so it is found again even if the client has disconnected.
        await self._cache.persist(key, self._cache.put(key, completion))
        return completion


async def _wait_for_results(results: asyncio.Queue[BatchItemResult | None]) -> list[BatchItemResult]:
    """Wait for a result, and return all that are ready; an empty list at the end."""
    ready: list[BatchItemResult] = []
    while not ready or not results.empty():
        result = await results.get()
        if result is None:
            # Put back: the end marker is read again after these results are consumed.
            if ready:
                results.put_nowait(None)
            break
        ready.append(result)
    return ready


def _item_problem(item_id: str, seen: set[str]) -> PeripetyError | None:
    if not 0 < len(item_id.encode()) <= _MAX_ID_BYTES:
        return InvalidArgumentError(f"item_id: must have 1 to {_MAX_ID_BYTES} bytes")
    if item_id in seen:
        return InvalidArgumentError(
            f"item_id: duplicate in this call: '{item_id}'; use a unique id for each item",
            code="DUPLICATE_ITEM",
        )
    return None


def _answer_key(item: BatchItem, request_key: str) -> str:
    """Return the cache key of an answer: its place in the batch and the request.

    A changed request is a new item.
    """
    return sha256(f"{item.batch_id}\n{request_key}\n{item.item_id}".encode()).hexdigest()
