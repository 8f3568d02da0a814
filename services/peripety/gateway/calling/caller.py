"""Calls a provider as often as it takes and as its limits allow."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from peripety.config import ProviderLimits
from peripety.errors import PeripetyError
from peripety.gateway.calling.breaker import Breaker, Outcome, Thresholds
from peripety.gateway.calling.clock import Clock
from peripety.gateway.calling.counters import Counters, Demand
from peripety.gateway.calling.demand import answering_at_most, demand_of
from peripety.gateway.calling.faults import is_provider_fault, may_pass, was_answered
from peripety.gateway.calling.gate import Gate
from peripety.gateway.calling.retries import RetryBudget, pause_before_retry
from peripety.gateway.model import ChatMessage, ChatRole, Completed, Completion, Usage
from peripety.gateway.models import cost_of, cost_of_call
from peripety.gateway.models.names import class_of
from peripety.gateway.providers.base import Finished
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from peripety.config import Config
    from peripety.gateway.model import GatewayEvent
    from peripety.gateway.models import Cost
    from peripety.gateway.providers.base import Call, Provider, ProviderEvent

__all__ = ["Caller"]

_MAX_ACCOUNTS = 256


class Caller:
    """Makes the calls of a process: one of it knows what they have in common.

    A call waits for its limits, passes the breaker, and is repeated when it fails in a way that may pass:
    only before any of its answer was released, within the retry budget, and never past the caller's deadline.

    Args:
        config: the limits and the breakers' thresholds.
        clock: what time it is.
        random: draws the pauses before retries.
    """

    def __init__(self, config: Config, clock: Clock = Clock(), random: Random | None = None) -> None:  # noqa: B008 - frozen
        # Who names a snapshot means the limits that it has with its whole class.
        self._limits = {class_of(name): limits for name, limits in config.limits.items()}
        self._thresholds = Thresholds(
            config.breaker_failures, config.breaker_open_seconds, config.breaker_successes
        )
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - it keeps callers apart, not secrets
        self._counters = Counters(clock.now)
        self._accounts: dict[str, _Account] = {}

    async def call(self, provider: Provider, call: Call) -> AsyncIterator[GatewayEvent]:
        """Ask a provider.

        Yields:
            Deltas as they arrive, then `Completed`.

        Raises:
            ResourceExhaustedError: the limits are used up for longer than the caller waits.
            UnavailableError: the breaker is open.
            PeripetyError: what the provider raises.
        """
        account = self._account(provider, call)
        account.budget.earn()
        attempts = 0
        while True:
            attempts += 1
            released = False
            try:
                begun = self._clock.today()
                async with following(_attempt(account, provider, call, begun)) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            cost = cost_of_call(event.usage, call.data, begun)
                            yield Completed(_completion(event, provider.name, attempts, cost))
                        else:
                            released = True
                            yield event
            except PeripetyError as error:
                if released:
                    raise
                pause = self._pause(account, error, attempts)
                if pause is None:
                    raise
            else:
                return
            await self._clock.sleep(pause)

    def _pause(self, account: _Account, error: PeripetyError, attempts: int) -> float | None:
        """Seconds to wait before the call is made again; None when it is not to be made again."""
        if not may_pass(error) or account.breaker.is_open:
            return None
        pause = pause_before_retry(attempts, error.retry_after, self._random)
        if pause is None or pause >= self._clock.left() or not account.budget.spend():
            return None
        return pause

    def _account(self, provider: Provider, call: Call) -> _Account:
        """The account of a request: its provider, which has one credential, and the class of its model."""
        model = class_of(call.model)
        name = f"{provider.name}/{model}"
        known = name in self._accounts or name in self._limits
        if not known and len(self._accounts) >= _MAX_ACCOUNTS:
            # Callers choose the names of models, but neither how much is remembered of them nor which limits
            # hold: the models that the configuration names keep theirs.
            name = f"{provider.name}/*"
        if name not in self._accounts:
            limits = self._limits.get(name) or self._limits.get(provider.name) or ProviderLimits()
            gate = Gate(name, limits, self._counters, self._clock)
            breaker = Breaker(provider.name, self._thresholds, self._clock.now)
            self._accounts[name] = _Account(limits, gate, breaker, RetryBudget())
        return self._accounts[name]


@dataclass(frozen=True, slots=True)
class _Account:
    """What the calls with one credential for one class of models have in common."""

    limits: ProviderLimits
    gate: Gate
    breaker: Breaker
    budget: RetryBudget


async def _attempt(
    account: _Account, provider: Provider, call: Call, when: datetime
) -> AsyncIterator[ProviderEvent]:
    """Make a call once, and report how it went when it has ended."""
    account.breaker.check()
    demand = demand_of(call, account.limits, when)
    if account.limits.hold_answers:
        call = answering_at_most(call, demand.output_tokens)
    reservation = await account.gate.enter(demand)
    used: Demand | None = None
    try:
        period = account.breaker.enter()
        # Until something else is known, a call that was made has used all that was set aside for it.
        used = demand
        outcome = Outcome.UNKNOWN
        begun = False
        try:
            async with following(provider.stream(call)) as events:
                async for event in events:
                    begun = True
                    if isinstance(event, Finished):
                        outcome = Outcome.WORKED
                        used = _used(event.usage, call, when) or demand
                    yield event
        except PeripetyError as error:
            outcome = Outcome.FAILED if is_provider_fault(error) else Outcome.UNKNOWN
            if not begun and was_answered(error):
                used = Demand(0, 0)
            raise
        finally:
            account.breaker.leave(period, outcome)
    finally:
        await account.gate.leave(reservation, used)


def _used(usage: Usage, call: Call, when: datetime) -> Demand | None:
    """What counts towards limits; None when the provider did not say."""
    if usage == Usage():
        return None
    cost = cost_of(usage, call.data, when)
    return Demand(usage.input_tokens, usage.output_tokens, None if cost is None else cost.total)


def _completion(end: Finished, provider: str, calls: int, cost: Cost | None) -> Completion:
    return Completion(
        ChatMessage(ChatRole.ASSISTANT, end.parts),
        None,
        end.usage,
        end.stop_reason,
        end.model,
        provider,
        calls=calls,
        schema_report=end.schema_report,
        cost=None if cost is None else cost.total,
        cache_savings=None if cost is None else cost.cache_savings,
    )
