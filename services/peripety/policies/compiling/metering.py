"""All questions of one order: how many at a time, and what they may use together."""

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
    """A gateway to whom everything counts towards one order.

    Where calls, tokens or money are capped, questions are asked one after the other: what is left is known
    only when the answer is there.

    Args:
        gateway: answers.
        budget: what all questions together may use.
        parallel: the most questions at a time.
    """

    def __init__(self, gateway: ModelGateway, budget: Budget, parallel: int = _PARALLEL) -> None:
        self._gateway = gateway
        self._allowance = Allowance(budget)
        is_capped = any(cap is not None for cap in (budget.max_calls, budget.max_tokens, budget.max_cost))
        self._slots = asyncio.Semaphore(1 if is_capped else parallel)

    @property
    def spent(self) -> Spent:
        """What all questions used."""
        return self._allowance.spent

    @property
    def is_late(self) -> bool:
        """Whether the time of the order is over."""
        return self._allowance.is_late

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Ask, with what is left of the budget.

        Raises:
            ResourceExhaustedError: the budget of the order is used up (code BUDGET_USED_UP).
            PeripetyError: what `ModelGateway.stream` raises.
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
        """Ask, and wait for the whole answer; see `stream`."""
        return await completion_of(self.stream(request))


def _used_up(finding: Finding) -> ResourceExhaustedError:
    return ResourceExhaustedError(finding.message, code=BUDGET_USED_UP)
