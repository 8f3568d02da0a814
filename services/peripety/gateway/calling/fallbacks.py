"""Fallback chain: the models of a request, tried in order until one answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from peripety.errors import PeripetyError
from peripety.gateway.calling.faults import another_may_answer
from peripety.gateway.model import Completed, FallingBack
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.gateway.calling.budgets import Purse
    from peripety.gateway.calling.caller import Caller
    from peripety.gateway.model import GatewayEvent, GenerateRequest
    from peripety.gateway.providers.base import Call, Provider

    Select: TypeAlias = Callable[[GenerateRequest, str | None], tuple[Provider, Call]]

__all__ = ["Candidates"]

_PATIENCE = 2.0
"""Maximum wait in seconds for a model that has a fallback, if limits or the provider require a wait."""


class Candidates:
    """Fallback chain of a request: its own model, then its `fallback_models`.

    The next model is tried after a failure that another model may not share, before any part of an answer was
    released. A model that has answered also gets the repair request.

    Args:
        request: names the models.
        select: returns the provider of a model.
        caller: executes the calls.
        purse: the budgets of the request, over all its models.
    """

    def __init__(self, request: GenerateRequest, select: Select, caller: Caller, purse: Purse) -> None:
        self._models: tuple[str | None, ...] = (request.model, *request.fallback_models)
        self._select = select
        self._caller = caller
        self._purse = purse

    async def ask(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Try one model after another.

        Yields:
            `FallingBack` for each failed model, deltas, then `Completed`.

        Raises:
            PeripetyError: the error of the first model, if all failed; its details contain the others.
        """
        calls = self._purse.calls
        failures: list[tuple[str, PeripetyError]] = []
        for index, model in enumerate(models := self._models, start=1):
            name, released = model or "the configured model", False
            try:
                provider, call = self._select(request, model)
                name = f"{provider.name}/{call.model}"
                if failures:
                    yield FallingBack(failures[-1][0], name, failures[-1][1])
                patience = _PATIENCE if index < len(models) else math.inf
                async with following(self._caller.call(provider, call, self._purse, patience)) as events:
                    async for event in events:
                        released = True
                        if isinstance(event, Completed):
                            self._models = (model,)
                            made = self._purse.calls - calls
                            yield Completed(replace(event.completion, calls=made))
                        else:
                            yield event
            except PeripetyError as error:
                if released:
                    raise
                failures.append((name, error))
                if not another_may_answer(error):
                    break
            else:
                return
        raise _all_of(failures)


def _all_of(failures: list[tuple[str, PeripetyError]]) -> PeripetyError:
    """Return the first failure, with the others in its details."""
    (_, first), *others = failures
    first.details |= {f"fallback_{n}": f"{name}: {error.code}" for n, (name, error) in enumerate(others, 1)}
    return first
