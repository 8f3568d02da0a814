"""Executor of provider calls: one place for limits, retries, budgets and the prompt-cache plan of a call.

All requests to providers pass `Caller.call`. A provider itself makes exactly one request: it never retries,
validates or repairs. Retries inside an HTTP client or a provider's SDK were rejected, because limits, budgets
and the call log would not see them.

One attempt acquires in a fixed order, and settles in the reverse order in `finally` blocks:

1. the circuit breaker is checked, so that an outage fails fast and reserves nothing;
2. the budgets reserve the estimated usage, possibly with a shorter answer;
3. the rate limiter admits the call in order of arrival, within the deadline and the maximum wait;
4. the circuit breaker admits the call, because it may have opened during the wait;
5. the request is sent, with the cache breakpoints of the plan.

Invariants:

- Reserve, then settle. A sent request counts as its whole reservation until the provider reports its usage.
  Caps therefore hold for concurrent calls, and after a cancellation or a broken stream. A check after the
  call was rejected: concurrent calls could each pass it and exceed a cap together. A request that the
  provider has rejected explicitly counts no tokens.
- No retry after the first released delta. The client has seen it, and another answer would contradict it.
- Retries are bounded three times: by the number of attempts, by the caller's deadline, and by a retry budget
  of one retry per ten calls. During an outage, retries therefore add about a tenth to the load.
- Time-outs are not retried: the caller has waited long, and the provider may still work on the request, which
  would cost twice. `faults` decides which errors are transient; an explicit hint of the provider takes
  precedence.
- If a retry fails for lack of budget, the error of the request before it is raised.
- The breaker counts consecutive failures per model family. A failure rate over a time window was rejected:
  after a busy healthy period it would open too late.
- Limits and breakers exist per credential and model family, as providers count them. Clients choose model
  names freely, so the number of states is bounded; further models of a provider share one state.

Structured-output validation, repair and fallback to another model are layers above this one. They see only
whole calls, and pass the budgets of the request through all of them.
"""

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
    """Executor of provider calls. One instance per process holds all shared limits and breakers.

    A call waits for its rate limits and passes the circuit breaker. It is retried after a transient failure
    only: before any part of its answer was released, within the retry budget, and never past the caller's
    deadline.

    Args:
        config: rate limits and breaker thresholds.
        clock: source of the time.
        random: source of the jitter of retries.
        counters: usage of the rate limits; by default in memory.
        budgets: the budgets; by default in memory, without history.
        report: called with the record of each finished call.
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
        # A limit that names a snapshot applies to the snapshot's whole model family.
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
        """Return the budgets of a request, for all its calls."""
        return self._budgets.purse(request)

    def cache_plan(self, provider: Provider, call: Call) -> CachePlan | None:
        """Return the predicted effect of a call on the prompt cache; None if it is disabled or unknown."""
        return self._prompt_cache.visit(provider.name, provider.account, call).plan

    async def call(
        self, provider: Provider, call: Call, purse: Purse | None = None, patience: float = math.inf
    ) -> AsyncIterator[GatewayEvent]:
        """Call a provider.

        Args:
            provider: the provider.
            call: the request.
            purse: the budgets of the request; by default those of a request with this call only.
            patience: the maximum wait in seconds, each time, before a request is sent.

        Yields:
            Deltas as they arrive, then `Completed`.

        Raises:
            ResourceExhaustedError: a rate limit is exhausted for longer than the maximum wait, or a budget
                is.
            UnavailableError: the breaker is open.
            PeripetyError: any error of the provider.
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
                    # Raise the error of the call itself, not the one that prevents the retry.
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
        """Return the delay before a retry in seconds; None if the call must not be retried."""
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
        """Execute a call once, within rate limits and budgets."""
        account.breaker.check()
        held = await purse.reserve(call, demand_of(call, account.limits, attempt.begun))
        if held.answer_is_capped or account.limits.hold_answers:
            call = answering_at_most(call, held.demand.output_tokens)
        try:
            reservation = await account.gate.enter(held.demand, patience)
            try:
                period = account.breaker.enter()
                purse.calls += 1
                # A sent request counts as its whole reservation until the actual usage is known.
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
        """Send a call to the provider, and record its outcome."""
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
        """Return the shared state of a request's credential and model family."""
        model = class_of(call.model)
        name = f"{provider.name}/{model}"
        known = name in self._accounts or name in self._limits
        if not known and len(self._accounts) >= _MAX_ACCOUNTS:
            # Clients choose model names. They must not control how many states are stored, nor which limits
            # apply: models named in the configuration have permanent states.
            name = f"{provider.name}/*"
        if name not in self._accounts:
            limits = self._limits.get(name) or self._limits.get(provider.name) or ProviderLimits()
            gate = Gate(name, limits, self._counters, self._clock, credential=provider.account)
            breaker = Breaker(provider.name, self._thresholds, self._clock.now)
            self._accounts[name] = _Account(limits, gate, breaker, RetryBudget())
        return self._accounts[name]


@dataclass(frozen=True, slots=True)
class _Account:
    """Shared state of all calls with one credential to one model family."""

    limits: ProviderLimits
    gate: Gate
    breaker: Breaker
    retries: RetryBudget
