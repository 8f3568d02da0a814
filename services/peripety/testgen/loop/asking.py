"""Model calls of a run within its limits: reserve, record, call, settle."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from peripety.errors import PeripetyError
from peripety.gateway.model import CacheConfig, ChatMessage, GenerateRequest, Spent
from peripety.gateway.sizes import prompt_tokens
from peripety.gateway.used import used_by
from peripety.testgen.loop.ledger import LimitReachedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.model import Completion
    from peripety.testgen.loop.ledger import Ledger, Reservation
    from peripety.testgen.model import TestGenOrder

__all__ = ["Call", "Caller"]

T = TypeVar("T")

_SPARE_TOKENS = 256
"""Allowance for the tokens that tools or a schema add to a prompt."""

_EXPECTED_REUSE = 8
_TEMPERATURE = 0.3

_UNKNOWN = Spent(calls=1, cost=None, cache_savings=None)
"""The usage of a response that did not arrive completely."""


class Call:
    """A model call in progress.

    Attributes:
        request: the request with its budget.
        completion: the response, set by the code that consumes the stream.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self.request = request
        self.completion: Completion | None = None


class Caller:
    """Client for the model calls of a run, with budget accounting.

    Args:
        order: determines the model.
        system: the system text of all calls.
        ledger: the limits.
    """

    def __init__(self, order: TestGenOrder, system: str, ledger: Ledger) -> None:
        self._model = order.model
        self._system = system
        self._ledger = ledger

    def request(self, text: str) -> GenerateRequest:
        """Return a request without limits."""
        cache = CacheConfig(expected_reuse=_EXPECTED_REUSE)
        message = ChatMessage.user(text)
        return GenerateRequest(
            self._system, (message,), model=self._model, temperature=_TEMPERATURE, cache=cache
        )

    def reserve(self, request: GenerateRequest, output_tokens: int, answers: int = 1) -> Reservation:
        """Reserve budget for a call.

        Args:
            request: the request with everything that may be sent.
            output_tokens: the output token limit of a response.
            answers: the number of responses, including repairs.

        Raises:
            LimitReachedError: the call could exceed a limit.
        """
        return self._ledger.reserve(prompt_tokens(request) + _SPARE_TOKENS, output_tokens, answers)

    async def in_time(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yield a stream within the time limit of model calls; the consumer is never interrupted.

        Raises:
            TimeoutError: the time limit is reached.
        """
        while True:
            async with asyncio.timeout(self._ledger.seconds_to_ask):
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event

    @asynccontextmanager
    async def calling(self, request: GenerateRequest, reservation: Reservation) -> AsyncIterator[Call]:
        """Call the model within a reservation, and settle it at the end in any case.

        Args:
            request: the request.
            reservation: the reservation.

        Raises:
            LimitReachedError: a limit was reached during the call; a `TimeoutError` counts as the time limit.
            PeripetyError: the call failed for another reason.
        """
        call = Call(replace(request, max_output_tokens=reservation.output_tokens, budget=reservation.budget))
        try:
            yield call
        except TimeoutError:
            self._ledger.settle(reservation, _UNKNOWN)
            raise self._ledger.out_of_time from None
        except PeripetyError as error:
            self._ledger.settle(reservation, used_by(error))
            limit = self._ledger.limit_of(error)
            if limit is not None:
                raise LimitReachedError(limit) from error
            raise
        self._ledger.settle(reservation, _UNKNOWN if call.completion is None else Spent.on(call.completion))
