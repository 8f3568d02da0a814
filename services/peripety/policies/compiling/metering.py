"""Budgeted gateway: concurrency and budget of all model calls of one order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import PeripetyError, ResourceExhaustedError
from peripety.gateway.allowance import Allowance
from peripety.gateway.model import Completed, Spent
from peripety.gateway.model.replay import completion_of
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.errors import Finding
    from peripety.gateway.model import Budget, Completion, GatewayEvent, GenerateRequest, ModelGateway

__all__ = ["BUDGET_USED_UP", "MeteredGateway"]

BUDGET_USED_UP = "BUDGET_USED_UP"

_PARALLEL = 8


class MeteredGateway:
    """Gateway that charges every call to the budget of one order.

    If calls, tokens or cost are limited, calls run one at a time, because the remaining budget is only known
    after a response.

    Args:
        gateway: the underlying gateway.
        budget: the budget of all calls together.
        parallel: the maximum number of concurrent calls.
    """

    def __init__(self, gateway: ModelGateway, budget: Budget, parallel: int = _PARALLEL) -> None:
        self._gateway = gateway
        self._allowance = Allowance(budget)
        is_capped = any(cap is not None for cap in (budget.max_calls, budget.max_tokens, budget.max_cost))
        self._slots = asyncio.Semaphore(1 if is_capped else parallel)

    @property
    def spent(self) -> Spent:
        """The usage of all calls."""
        return self._allowance.spent

    @property
    def is_late(self) -> bool:
        """True if the time limit of the order is reached."""
        return self._allowance.is_late

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream a response within the remaining budget.

        Raises:
            ResourceExhaustedError: the budget of the order is exhausted (code BUDGET_USED_UP).
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        async with self._slots:
            used_up = self._allowance.used_up()
            if used_up is not None:
                raise _used_up(used_up)
            question = replace(request, budget=self._allowance.left())
            try:
                async with following(self._gateway.stream(question)) as events:
                    async for event in events:
                        if isinstance(event, Completed):
                            self._allowance.count(Spent.on(event.completion))
                        yield event
            except PeripetyError as error:
                used_up = self._allowance.failed(error)
                if used_up is None:
                    raise
                raise _used_up(used_up) from error

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the complete response; see `stream`."""
        return await completion_of(self.stream(request))


def _used_up(finding: Finding) -> ResourceExhaustedError:
    return ResourceExhaustedError(finding.message, code=BUDGET_USED_UP)
