"""Executor of provider calls: one place for limits, retries, budgets, prompt-cache plan and call record.

All requests to providers pass `CallExecutor.stream`. A provider itself makes exactly one request: it never
retries, validates or repairs. Retries inside an HTTP client or an SDK of a provider were rejected, because
limits, budgets and the call log would not see them.

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
  would cost twice. `retry` decides which errors are transient; an explicit hint of the provider takes
  precedence.
- If a retry fails for lack of budget, the error of the request before it is raised.
- The breaker counts consecutive failures per model family. A failure rate over a time window was rejected:
  after a busy healthy period it would open too late.
- Limits and breakers exist per credential and model family, as providers count them. Clients choose model
  names freely, so the number of states is bounded; further models of a provider share one state.

Every request leaves one record, for the log and the usage statistics.

The fallback chain at the end of this module tries the models of a request in order until one answers. It sees
only whole calls, as validation and repair of structured output do, and passes the budgets of the request
through all of them.
"""

from __future__ import annotations

import logging
import math
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from peripety.core.call_context import Clock
from peripety.core.concurrency import closing
from peripety.core.config import ProviderLimits
from peripety.errors import PeripetyError
from peripety.gateway.budgets.budget_session import BudgetManager, MemoryBudgetLedger, NoUsageHistory
from peripety.gateway.budgets.types import BUDGET_EXHAUSTED
from peripety.gateway.calls.circuit_breaker import (
    BreakerOutcome,
    BreakerThresholds,
    CircuitBreaker,
    CircuitState,
)
from peripety.gateway.calls.rate_limiter import (
    CallUsage,
    LimitUsage,
    MemoryUsageCounters,
    RateLimiter,
    estimate_usage,
    with_max_output,
)
from peripety.gateway.calls.retry import (
    RetryBudget,
    allows_fallback,
    decide_retry,
    is_explicit_rejection,
    is_provider_fault,
)
from peripety.gateway.models.call_cost import Cost, cost_of_call
from peripety.gateway.prompt_cache.planner import PromptCache
from peripety.gateway.provider_selection import family_of
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import ChatMessage, ChatRole
from peripety.gateway.types.response import Completed, Completion, FallingBack, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from datetime import datetime

    from peripety.core.config import Config
    from peripety.gateway.budgets.budget_session import BudgetSession
    from peripety.gateway.calls.rate_limiter import UsageCounters
    from peripety.gateway.providers.provider import Provider, ProviderCall
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import CachePlan, GatewayEvent

    Select: TypeAlias = Callable[[GenerateRequest, str | None], tuple[Provider, ProviderCall]]


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Record of a request that was sent to a provider.

    Attributes:
        provider: the provider.
        model: the model that answered, else the requested one, in the provider's spelling.
        conversation_id: the conversation that it continued; None for none.
        outcome: `OK`, the error code, or `CANCELLED` if the caller left.
        started_at: start time.
        seconds: duration.
        counted_usage: the usage that counts towards limits and budgets, actual or assumed.
        usage: tokens reported by the provider; all zero if it reported none.
        cost: the cost; None if unknown.
    """

    provider: str
    model: str
    conversation_id: str | None
    outcome: str
    started_at: datetime
    seconds: float
    counted_usage: CallUsage
    usage: Usage
    cost: Cost | None


def log_call(record: CallRecord) -> None:
    """Log a call: numbers and names only, never its content."""
    _log.info(
        "provider call",
        extra={
            "provider": record.provider,
            "model": record.model,
            "outcome": record.outcome,
            "ms": round(record.seconds * 1000),
            "input_tokens": record.usage.input_tokens,
            "output_tokens": record.usage.output_tokens,
            "cache_read_tokens": record.usage.cache_read_tokens,
            "cache_write_tokens": record.usage.cache_write_tokens,
            "cost_pico_dollars": None if record.cost is None else record.cost.total,
        },
    )


@dataclass(slots=True)
class CallAttempt:
    """Record of one request to a provider.

    Attributes:
        started_at: start time.
        used: actual or assumed usage; None while no request was sent.
        has_released: whether any part of the answer was passed on.
        outcome: success, failure or neither, for the circuit breaker.
        code: `OK`, the error code, or `CANCELLED` if the caller left.
        cost: the cost; None if unknown.
        finished: the last event of the answer, if there is one.
        cache_plan: the predicted effect on the prompt cache.
    """

    started_at: datetime
    used: CallUsage | None = None
    has_released: bool = False
    outcome: BreakerOutcome = BreakerOutcome.NEUTRAL
    code: str = "CANCELLED"
    cost: Cost | None = None
    finished: AnswerFinished | None = None
    cache_plan: CachePlan | None = None

    def record_end(self, finished: AnswerFinished, cost: Cost | None) -> None:
        """Record the end of a complete answer."""
        self.outcome, self.code, self.finished, self.cost = BreakerOutcome.SUCCEEDED, "OK", finished, cost
        usage = finished.usage
        if usage != Usage():
            self.used = CallUsage(
                usage.input_tokens,
                usage.output_tokens,
                None if cost is None else cost.total,
            )

    def record_failure(self, error: PeripetyError) -> None:
        """Record a failure. A request that the provider rejected has used no tokens."""
        self.outcome = BreakerOutcome.FAILED if is_provider_fault(error) else BreakerOutcome.NEUTRAL
        self.code = error.code
        if not self.has_released and is_explicit_rejection(error):
            self.used, self.cost = CallUsage(0, 0), Cost()

    def to_record(self, provider: str, call: ProviderCall, seconds: float) -> CallRecord:
        """Return the call record.

        Args:
            provider: name of the provider.
            call: the request.
            seconds: duration.
        """
        return CallRecord(
            provider=provider,
            model=call.model if self.finished is None else self.finished.model,
            conversation_id=call.request.conversation_id,
            outcome=self.code,
            started_at=self.started_at,
            seconds=seconds,
            counted_usage=self.used or CallUsage(0, 0),
            usage=Usage() if self.finished is None else self.finished.usage,
            cost=self.cost,
        )

    def to_completion(self, finished: AnswerFinished, provider: str, calls: int) -> Completion:
        """Return the completion.

        Args:
            finished: the last event of the answer.
            provider: name of the provider.
            calls: number of requests, retries included.
        """
        return Completion(
            ChatMessage(ChatRole.ASSISTANT, finished.parts),
            None,
            finished.usage,
            finished.stop_reason,
            finished.model,
            provider,
            calls=calls,
            schema_report=finished.schema_report,
            cost=None if self.cost is None else self.cost.total,
            cache_savings=None if self.cost is None else self.cost.cache_savings,
            cache_plan=self.cache_plan,
        )


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """Circuit breaker and rate limits of one provider and model family.

    Attributes:
        provider: the provider.
        model: the model family; `*` for all models beyond the maximum number of states.
        circuit: state of the circuit breaker.
        retry_delay: seconds until the next call can pass; None if calls pass.
        failures: consecutive failures since the state changed.
        waiting_calls: calls that wait for a rate limit.
        limits: the rate limits.
        used: their current use.
    """

    provider: str
    model: str
    circuit: CircuitState
    retry_delay: float | None
    failures: int
    waiting_calls: int
    limits: ProviderLimits
    used: LimitUsage


_MAX_CREDENTIAL_STATES = 256


class CallExecutor:
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
        record_call: called with the record of each finished call.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        random: Random | None = None,
        *,
        counters: UsageCounters | None = None,
        budgets: BudgetManager | None = None,
        record_call: Callable[[CallRecord], None] = log_call,
    ) -> None:
        # A limit that names a snapshot applies to the snapshot's whole model family.
        self._limits = {family_of(name): limits for name, limits in config.limits.items()}
        self._thresholds = BreakerThresholds(
            config.breaker_failures,
            config.breaker_open_seconds,
            config.breaker_successes,
        )
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - it keeps callers apart, not secrets
        self._counters = counters or MemoryUsageCounters(clock.now)
        self._budgets = budgets or BudgetManager(
            config.daily_budget,
            MemoryBudgetLedger(clock),
            NoUsageHistory(),
            clock,
        )
        self._record_call = record_call
        self._prompt_cache = PromptCache(clock.now, clock.today)
        self._credential_states: dict[str, _CredentialState] = {}

    def open_budgets(self, request: GenerateRequest) -> BudgetSession:
        """Return the budgets of a request, for all its calls."""
        return self._budgets.open(request)

    def plan_cache(self, provider: Provider, call: ProviderCall) -> CachePlan | None:
        """Return the predicted effect of a call on the prompt cache; None if it is disabled or unknown."""
        return self._prompt_cache.plan_call(provider.name, provider.account, call).plan

    async def read_status(self) -> list[ProviderStatus]:
        """Return the state of every provider and model family that was called, in order of their names.

        Raises:
            UnavailableError: the server of shared counters is unavailable.
        """
        found = []
        for name, state in sorted(self._credential_states.items()):
            provider, _, model = name.partition("/")
            breaker = state.breaker
            found.append(
                ProviderStatus(
                    provider=provider,
                    model=model,
                    circuit=breaker.state,
                    retry_delay=breaker.retry_delay,
                    failures=breaker.failures,
                    waiting_calls=state.rate_limiter.waiting,
                    limits=state.limits,
                    used=await state.rate_limiter.read_usage(),
                )
            )
        return found

    async def stream(
        self,
        provider: Provider,
        call: ProviderCall,
        budget_session: BudgetSession | None = None,
        max_wait: float = math.inf,
    ) -> AsyncIterator[GatewayEvent]:
        """Call a provider.

        Args:
            provider: the provider.
            call: the request.
            budget_session: the budgets of the request; by default those of a request with this call only.
            max_wait: the maximum wait in seconds, each time, before a request is sent.

        Yields:
            Deltas as they arrive, then `Completed`.

        Raises:
            ResourceExhaustedError: a rate limit is exhausted for longer than the maximum wait, or a budget
                is.
            UnavailableError: the breaker is open.
            PeripetyError: any error of the provider.
        """
        account = self._credential_state(provider, call)
        account.retry_budget.deposit()
        budget_session = budget_session or self.open_budgets(call.request)
        attempts = 0
        failure: PeripetyError | None = None
        while True:
            attempts += 1
            attempt = CallAttempt(self._clock.today())
            try:
                async with self._admit(attempt, account, call, budget_session, max_wait) as admitted:
                    planned = self._prompt_cache.plan_call(provider.name, provider.account, admitted)
                    attempt.cache_plan = planned.plan
                    with self._record(attempt, provider, admitted):
                        async with closing(provider.stream(planned.call)) as events:
                            async for event in events:
                                planned.on_first_event()
                                if isinstance(event, AnswerFinished):
                                    planned.on_finished(event)
                                    cost = cost_of_call(event.usage, admitted.data, attempt.started_at)
                                    attempt.record_end(event, cost)
                                else:
                                    attempt.has_released = True
                                    yield event
            except PeripetyError as error:
                if failure is not None and error.code == BUDGET_EXHAUSTED:
                    # Raise the error of the call itself, not the one that prevents the retry.
                    raise failure from error
                pause = (
                    None
                    if attempt.has_released or account.breaker.is_open
                    else decide_retry(
                        error,
                        attempts,
                        account.retry_budget,
                        min(self._clock.remaining_seconds(), max_wait),
                        self._random,
                    )
                )
                if pause is None:
                    raise
                failure = error
            else:
                if attempt.finished is not None:
                    yield Completed(attempt.to_completion(attempt.finished, provider.name, attempts))
                return
            await self._clock.sleep(pause)

    @asynccontextmanager
    async def _admit(
        self,
        attempt: CallAttempt,
        state: _CredentialState,
        call: ProviderCall,
        budget_session: BudgetSession,
        max_wait: float,
    ) -> AsyncIterator[ProviderCall]:
        """Reserve rate limits and budgets for one request, and settle them at its end.

        Yields:
            The call, with a shorter answer if the budgets or limits require it.
        """
        state.breaker.raise_if_open()
        held = await budget_session.reserve(call, estimate_usage(call, state.limits, attempt.started_at))
        if held.is_answer_capped or state.limits.is_output_capped:
            call = with_max_output(call, held.estimate.output_tokens)
        try:
            reservation = await state.rate_limiter.acquire(held.estimate, max_wait)
            try:
                period = state.breaker.acquire()
                budget_session.calls += 1
                # A sent request counts as its whole reservation until the actual usage is known.
                attempt.used = held.estimate
                try:
                    yield call
                finally:
                    state.breaker.release(period, attempt.outcome)
            finally:
                await state.rate_limiter.release(reservation, attempt.used)
        finally:
            await budget_session.settle(held, attempt.used)

    @contextmanager
    def _record(self, attempt: CallAttempt, provider: Provider, call: ProviderCall) -> Iterator[None]:
        """Record the failure of a request, and log the call at its end."""
        begun = self._clock.now()
        try:
            yield
        except PeripetyError as error:
            attempt.record_failure(error)
            raise
        finally:
            self._record_call(attempt.to_record(provider.name, call, self._clock.now() - begun))

    def _credential_state(self, provider: Provider, call: ProviderCall) -> _CredentialState:
        """Return the shared state of a request's credential and model family."""
        model = family_of(call.model)
        name = f"{provider.name}/{model}"
        known = name in self._credential_states or name in self._limits
        if not known and len(self._credential_states) >= _MAX_CREDENTIAL_STATES:
            # Clients choose model names. They must not control how many states are stored, nor which limits
            # apply: models named in the configuration have permanent states.
            name = f"{provider.name}/*"
        if name not in self._credential_states:
            limits = self._limits.get(name) or self._limits.get(provider.name) or ProviderLimits()
            gate = RateLimiter(name, limits, self._counters, self._clock, credential=provider.account)
            breaker = CircuitBreaker(provider.name, self._thresholds, self._clock.now)
            self._credential_states[name] = _CredentialState(limits, gate, breaker, RetryBudget())
        return self._credential_states[name]


@dataclass(frozen=True, slots=True)
class _CredentialState:
    """Shared state of all calls with one credential to one model family."""

    limits: ProviderLimits
    rate_limiter: RateLimiter
    breaker: CircuitBreaker
    retry_budget: RetryBudget


_FALLBACK_WAIT = 2.0
"""Maximum wait in seconds for a model that has a fallback, if limits or the provider require a wait."""


class FallbackChain:
    """Fallback chain of a request: its own model, then its `fallback_models`.

    The next model is tried after a failure that another model may not share, before any part of an answer was
    released. A model that has answered also gets the repair request.

    Args:
        request: names the models.
        select: returns the provider of a model.
        executor: executes the calls.
        budget_session: the budgets of the request, over all its models.
    """

    def __init__(
        self,
        request: GenerateRequest,
        select: Select,
        executor: CallExecutor,
        budget_session: BudgetSession,
    ) -> None:
        self._models: tuple[str | None, ...] = (request.model, *request.fallback_models)
        self._select = select
        self._executor = executor
        self._budget_session = budget_session

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Try one model after another.

        Yields:
            `FallingBack` for each failed model, deltas, then `Completed`.

        Raises:
            PeripetyError: the error of the first model, if all failed; its details contain the others.
        """
        calls = self._budget_session.calls
        failures: list[tuple[str, PeripetyError]] = []
        for index, model in enumerate(models := self._models, start=1):
            name, released = model or "the configured model", False
            try:
                provider, call = self._select(request, model)
                name = f"{provider.name}/{call.model}"
                if failures:
                    yield FallingBack(failures[-1][0], name, failures[-1][1])
                patience = _FALLBACK_WAIT if index < len(models) else math.inf
                async with closing(
                    self._executor.stream(provider, call, self._budget_session, patience),
                ) as events:
                    async for event in events:
                        released = True
                        if isinstance(event, Completed):
                            self._models = (model,)
                            made = self._budget_session.calls - calls
                            yield Completed(replace(event.completion, calls=made))
                        else:
                            yield event
            except PeripetyError as error:
                if released:
                    raise
                failures.append((name, error))
                if not allows_fallback(error):
                    break
            else:
                return
        raise _combine_failures(failures)


def _combine_failures(failures: list[tuple[str, PeripetyError]]) -> PeripetyError:
    """Return the first failure, with the others in its details."""
    (_, first), *others = failures
    first.details |= {f"fallback_{n}": f"{name}: {error.code}" for n, (name, error) in enumerate(others, 1)}
    return first
