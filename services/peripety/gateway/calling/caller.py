"""Calls a provider as often as it takes and as its limits allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from peripety.config import ProviderLimits
from peripety.errors import PeripetyError
from peripety.gateway.calling.attempt import Attempt
from peripety.gateway.calling.breaker import Breaker, Thresholds
from peripety.gateway.calling.budgets import Budgets, MemoryLedger, NoHistory
from peripety.gateway.calling.budgets.refusals import BUDGET_EXHAUSTED
from peripety.gateway.calling.clock import Clock
from peripety.gateway.calling.counters import MemoryCounters
from peripety.gateway.calling.demand import answering_at_most, demand_of
from peripety.gateway.calling.faults import may_pass
from peripety.gateway.calling.gate import Gate
from peripety.gateway.calling.reports import log_call
from peripety.gateway.calling.retries import RetryBudget, pause_before_retry
from peripety.gateway.catalogue import cost_of_call
from peripety.gateway.catalogue.names import class_of
from peripety.gateway.model import Completed
from peripety.gateway.prompt_cache import PromptCache
from peripety.gateway.providers.base import Finished
from peripety.gateway.streams import following

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.config import Config
    from peripety.gateway.calling.budgets import Purse
    from peripety.gateway.calling.counters import Counters
    from peripety.gateway.calling.reports import CallReport
    from peripety.gateway.model import CachePlan, GatewayEvent, GenerateRequest
    from peripety.gateway.providers.base import Call, Delta, Provider

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
        counters: what was used of limits; kept in this process by default.
        budgets: the budgets; kept in this process, and nowhere else, by default.
        report: is told of each call that has ended.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        random: Random | None = None,
        *,
        counters: Counters | None = None,
        budgets: Budgets | None = None,
        report: Callable[[CallReport], None] = log_call,
    ) -> None:
        # Who names a snapshot means the limits that it has with its whole class.
        self._limits = {class_of(name): limits for name, limits in config.limits.items()}
        self._thresholds = Thresholds(
            config.breaker_failures, config.breaker_open_seconds, config.breaker_successes
        )
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - it keeps callers apart, not secrets
        self._counters = counters or MemoryCounters(clock.now)
        self._budgets = budgets or Budgets(config.daily_budget, MemoryLedger(clock), NoHistory(), clock)
        self._report = report
        self._prompt_cache = PromptCache(clock.now, clock.today)
        self._accounts: dict[str, _Account] = {}

    def purse(self, request: GenerateRequest) -> Purse:
        """Return the budgets of a request, for all the calls that it takes."""
        return self._budgets.purse(request)

    def cache_plan(self, provider: Provider, call: Call) -> CachePlan | None:
        """Return what the prompt cache would do with a call; None when it is left alone or not known."""
        return self._prompt_cache.visit(provider.name, provider.account, call).plan

    async def call(
        self, provider: Provider, call: Call, purse: Purse | None = None, patience: float = math.inf
    ) -> AsyncIterator[GatewayEvent]:
        """Ask a provider.

        Args:
            provider: who is asked.
            call: what.
            purse: the budgets of the request; those of a request of this one call by default.
            patience: for how many seconds to wait at most, each time, before a request is sent.

        Yields:
            Deltas as they arrive, then `Completed`.

        Raises:
            ResourceExhaustedError: the limits are used up for longer than the caller waits, or a budget.
            UnavailableError: the breaker is open.
            PeripetyError: what the provider raises.
        """
        account = self._account(provider, call)
        account.retries.earn()
        purse = purse or self.purse(call.request)
        attempts = 0
        failure: PeripetyError | None = None
        while True:
            attempts += 1
            attempt = Attempt(self._clock.today())
            try:
                async with following(
                    self._attempt(attempt, account, provider, call, purse, patience)
                ) as events:
                    async for event in events:
                        yield event
            except PeripetyError as error:
                if failure is not None and error.code == BUDGET_EXHAUSTED:
                    # What keeps the answer from coming is what failed, not that it is not tried again.
                    raise failure from error
                pause = None if attempt.released else self._pause(account, error, attempts, patience)
                if pause is None:
                    raise
                failure = error
            else:
                if attempt.finished is not None:
                    yield Completed(attempt.completion(attempt.finished, provider.name, attempts))
                return
            await self._clock.sleep(pause)

    def _pause(self, account: _Account, error: PeripetyError, attempts: int, patience: float) -> float | None:
        """Seconds to wait before the call is made again; None when it is not to be made again."""
        if not may_pass(error) or account.breaker.is_open:
            return None
        pause = pause_before_retry(attempts, error.retry_after, self._random)
        if pause is None or pause >= min(self._clock.left(), patience) or not account.retries.spend():
            return None
        return pause

    async def _attempt(
        self,
        attempt: Attempt,
        account: _Account,
        provider: Provider,
        call: Call,
        purse: Purse,
        patience: float,
    ) -> AsyncIterator[Delta]:
        """Make a call once, within limits and budgets."""
        account.breaker.check()
        held = await purse.reserve(call, demand_of(call, account.limits, attempt.begun))
        if held.answer_is_capped or account.limits.hold_answers:
            call = answering_at_most(call, held.demand.output_tokens)
        try:
            reservation = await account.gate.enter(held.demand, patience)
            try:
                period = account.breaker.enter()
                purse.calls += 1
                # Until something else is known, a call that was made has used all that was set aside for it.
                attempt.used = held.demand
                async with following(self._made(attempt, provider, call)) as deltas:
                    try:
                        async for delta in deltas:
                            yield delta
                    finally:
                        account.breaker.leave(period, attempt.outcome)
            finally:
                await account.gate.leave(reservation, attempt.used)
        finally:
            await purse.settle(held, attempt.used)

    async def _made(self, attempt: Attempt, provider: Provider, call: Call) -> AsyncIterator[Delta]:
        """Make a call, and notice what becomes of it."""
        begun = self._clock.now()
        visit = self._prompt_cache.visit(provider.name, provider.account, call)
        attempt.cache_plan = visit.plan
        try:
            async with following(provider.stream(visit.call)) as events:
                async for event in events:
                    visit.started()
                    if isinstance(event, Finished):
                        visit.ended(event)
                        attempt.end(event, cost_of_call(event.usage, call.data, attempt.begun))
                    else:
                        attempt.released = True
                        yield event
        except PeripetyError as error:
            attempt.fail(error)
            raise
        finally:
            self._report(attempt.report(provider.name, call, self._clock.now() - begun))

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
            gate = Gate(name, limits, self._counters, self._clock, credential=provider.account)
            breaker = Breaker(provider.name, self._thresholds, self._clock.now)
            self._accounts[name] = _Account(limits, gate, breaker, RetryBudget())
        return self._accounts[name]


@dataclass(frozen=True, slots=True)
class _Account:
    """What the calls with one credential for one class of models have in common."""

    limits: ProviderLimits
    gate: Gate
    breaker: Breaker
    retries: RetryBudget
