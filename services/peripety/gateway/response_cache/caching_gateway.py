"""Caching gateway: an exact response cache and single-flight in front of another gateway.

A stored answer is reused only for exactly the same request, by its cache key.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.errors import InternalError, UnavailableError
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.response_cache.single_flight import (
    AnswerDivergedError,
    CacheHit,
    CallCompleted,
    CallFailed,
    DeliveredAnswer,
    FollowerRetryError,
    SharedCall,
)
from peripety.gateway.response_cache.tiers import (
    ResponseCache,
    is_storable,
    replay_answer,
)
from peripety.gateway.types.message import Tool
from peripety.gateway.types.request import GenerateRequest, ResponseCacheMode, ResponseSchema
from peripety.gateway.types.response import Completed, Completion, GatewayEvent, collect_completion
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.providers.registry import AnswerSource
    from peripety.gateway.types.request import Budget
    from peripety.gateway.types.response import ModelGateway


_KEY_FORMAT = 3


def cache_key(request: GenerateRequest, source: AnswerSource) -> str:
    """Return the SHA-256, in hexadecimal, of everything that an answer depends on.

    Every field of the request is included, so fields added later are too. Exceptions are the caller's budget
    and storage options, which do not affect the answer. The version of the program is included, because it
    determines how a request is sent.

    Args:
        request: the request.
        source: the model and account that would answer.

    Raises:
        InvalidArgumentError: the messages are invalid for every provider.
    """
    asked = replace(
        request,
        messages=normalize_messages(request.messages),
        model=source.model,
        temperature=None if request.temperature is None else float(request.temperature),
        response_cache=ResponseCacheMode.OFF,
        budget=None,
        conversation_id=None,
        conversation_budget=None,
    )
    document = {
        "format": _KEY_FORMAT,
        "program": __version__,
        "provider": source.provider,
        "account": source.account,
        "request": asked,
    }
    return sha256(_to_compact_json(document, sort_keys=True).encode()).hexdigest()


def _to_compact_json(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, default=_to_jsonable, separators=(",", ":"), sort_keys=sort_keys)


def _to_jsonable(value: Any) -> Any:
    if isinstance(value, ResponseSchema):
        # A model writes an object in the order of its schema, so the order of keys is significant here.
        document = _to_compact_json(dict(value.document), sort_keys=False)
        return {"name": value.name, "document": document, "advisory": value.advisory}
    if isinstance(value, Tool):
        return [
            value.name,
            value.description,
            _to_compact_json(dict(value.input_schema), sort_keys=False),
            value.strict,
        ]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        kind = type(value).__name__
        return {"kind": kind, **{field.name: getattr(value, field.name) for field in fields(value)}}
    raise TypeError(f"{type(value).__name__} has no canonical form yet")


class _SharedCallKey(NamedTuple):
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
        answer_source: returns the model and account that would answer a request.
        count_hit: called for each answer without a model call, with its conversation.
    """

    def __init__(
        self,
        inner: ModelGateway,
        cache: ResponseCache,
        answer_source: Callable[[GenerateRequest], AnswerSource],
        count_hit: Callable[[Completion, str | None], None] = lambda _completion, _conversation: None,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._answer_source = answer_source
        self._count_hit = count_hit
        self._shared_calls: dict[_SharedCallKey, SharedCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream a stored, shared or new answer; see `ModelGateway.stream`.

        Most requests do not opt in. They get the stream of the wrapped gateway itself.
        """
        return self._stream_shared(request) if _is_shareable(request) else self._inner.stream(request)

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return a stored, shared or new answer; see `ModelGateway.generate`."""
        return await collect_completion(self.stream(request))

    async def aclose(self) -> None:
        """Cancel running calls, and wait until completed answers are stored."""
        self._closed = True
        for flight in self._shared_calls.values():
            flight.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stream_shared(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        key = cache_key(request, self._answer_source(request))
        progress = DeliveredAnswer()
        failure: BaseException | None = None
        while True:
            try:
                async with closing(self._stream_answer(key, request)) as events:
                    async for event in events:
                        news = progress.advance(event)
                        if isinstance(news, Completed) and news.completion.from_response_cache:
                            self._count_hit(news.completion, request.conversation_id)
                        if news is not None:
                            yield news
            except FollowerRetryError as handed_over:
                failure = handed_over.cause or failure
                if failure is not None and not progress.try_restart():
                    raise failure from None
            except AnswerDivergedError:
                if failure is None:
                    raise
                raise failure from None
            else:
                return

    async def _stream_answer(self, key: str, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream the answer from memory, from a running call, or from a new one."""
        fresh = request.response_cache is ResponseCacheMode.REFRESH
        at_hand = None if fresh else self._cache.get_local(key)
        if at_hand is not None:
            for event in replay_answer(at_hand):
                yield event
            return
        together = _SharedCallKey(key, request.budget, request.conversation_id)
        while (flight := self._shared_calls.get(together)) is not None and flight.is_abandoned:
            async with call_context.timeout_at_deadline(None):
                await flight.wait_closed()
        if self._closed:
            raise _shutting_down_error()
        if flight is None:
            flight = self._shared_calls[together] = SharedCall()
            task = flight.start(self._run_shared_call(flight, together, request, use_cache=not fresh))
            self._tasks.add(task)
            task.add_done_callback(partial(self._on_task_done, together, flight))
        async with closing(flight.follow(fresh=fresh)) as events:
            async for event in events:
                yield event

    async def _run_shared_call(
        self,
        shared_call: SharedCall,
        call_key: _SharedCallKey,
        request: GenerateRequest,
        *,
        use_cache: bool,
    ) -> None:
        # Each caller applies its own deadline; the call runs as long as one of them waits.
        call_context.begin_call(request_id=call_context.request_id(), timeout=None)
        key, stored = call_key.key, None
        try:
            found = await self._cache.get(key) if use_cache else None
            if found is not None:
                shared_call.set_outcome(CacheHit(found))
            else:
                completion = await self._execute(shared_call, request)
                if is_storable(completion):
                    stored = self._cache.put(key, completion)
                shared_call.set_outcome(CallCompleted(completion))
        except asyncio.CancelledError:
            shared_call.set_outcome(CallFailed(_shutting_down_error()))
            raise
        except Exception as error:  # noqa: BLE001 - it is the leader's, who raises it
            shared_call.set_outcome(CallFailed(error))
        finally:
            del self._shared_calls[call_key]
        if stored is not None:
            await self._cache.persist(key, stored)

    def _on_task_done(
        self,
        call_key: _SharedCallKey,
        shared_call: SharedCall,
        task: asyncio.Task[None],
    ) -> None:
        self._tasks.discard(task)
        if self._shared_calls.get(call_key) is shared_call:
            # A task that is cancelled before its first step executes none of its code.
            del self._shared_calls[call_key]
            shared_call.set_outcome(CallFailed(_shutting_down_error()))

    async def _execute(self, shared_call: SharedCall, request: GenerateRequest) -> Completion:
        completion: Completion | None = None
        async with closing(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completion = event.completion
                else:
                    shared_call.publish(event)
        if completion is None:
            raise InternalError("event stream ended without a Completed event")
        return completion


def _shutting_down_error() -> UnavailableError:
    return UnavailableError("gateway is shutting down; retry the request", code="SERVER_SHUTTING_DOWN")


def _is_shareable(request: GenerateRequest) -> bool:
    """Return True if the caller opts in, and an answer can be reused for another caller.

    A caller's own check is code, and two checks cannot be compared for equality. An answer that passed one
    would be streamed to a caller whose check may reject it.
    """
    if request.schema is not None and request.schema.accept is not None:
        return False
    return request.response_cache is not ResponseCacheMode.OFF
