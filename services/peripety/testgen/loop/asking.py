"""Asking a model within the limits: reserved, written down, answered, accounted for."""

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
"""What a provider's way of asking for tools or a schema may add to a prompt."""

_EXPECTED_REUSE = 8
_TEMPERATURE = 0.3

_UNKNOWN = Spent(calls=1, cost=None, cache_savings=None)
"""What an answer used that did not come to its end."""


class Call:
    """A question that is being answered.

    Attributes:
        request: with its budget.
        completion: its answer, which whoever hears it puts here.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self.request = request
        self.completion: Completion | None = None


class Caller:
    """Makes the questions of a run, and keeps the account of them.

    Args:
        order: says which model is asked.
        system: the system text of all questions.
        ledger: the limits.
    """

    def __init__(self, order: TestGenOrder, system: str, ledger: Ledger) -> None:
        self._model = order.model
        self._system = system
        self._ledger = ledger

    def request(self, text: str) -> GenerateRequest:
        """A question, without its limits."""
        cache = CacheConfig(expected_reuse=_EXPECTED_REUSE)
        message = ChatMessage.user(text)
        return GenerateRequest(
            self._system, (message,), model=self._model, temperature=_TEMPERATURE, cache=cache
        )

    def reserve(self, request: GenerateRequest, output_tokens: int, answers: int = 1) -> Reservation:
        """Set aside what a question may use.

        Args:
            request: the question, with all that it may be sent with.
            output_tokens: the most that its answer should have.
            answers: how many it may take, with all repairs.

        Raises:
            LimitReachedError: it might pass a limit.
        """
        return self._ledger.reserve(prompt_tokens(request) + _SPARE_TOKENS, output_tokens, answers)

    async def in_time(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Follow a stream as long as models may be asked; nobody who takes its events is interrupted.

        Raises:
            TimeoutError: that time is over.
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
        """Ask within a reservation, and settle it when the answer is there or will not come.

        Args:
            request: the question.
            reservation: what was set aside for it.

        Raises:
            LimitReachedError: it met a limit on the way; a `TimeoutError` says so of the time.
            PeripetyError: whatever else the question failed of.
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
