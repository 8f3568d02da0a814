"""Metering and billing of requests: admission, cache lookup, usage and cost, per key and model.

Costs are exact to the pico-dollar.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from peripety.llmsim.provider_rules.limits import RateLimits, fingerprint
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.provider_rules.prompt_cache import SimPromptCaches
from peripety.llmsim.types import Api, ApiError, ApiErrorKind, BilledUsage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.llmsim.provider_rules.cache_entries import SimCacheVisit
    from peripety.llmsim.provider_rules.limits import RateAdmission, RateAllowance
    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.script.types import Script
    from peripety.llmsim.state import StateTable
    from peripety.llmsim.types import SimBlock, SimRequest


SECONDS_PER_HOUR = 3600

_USAGE_FIELDS = tuple(each.name for each in fields(BilledUsage))


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill.

    Attributes:
        what: `input`, `cache_read`, `cache_write_5m` (and other TTLs), `output` or `cache_storage`.
        tokens: the number of tokens.
        price: pico-dollars per token; for storage, per token and hour.
        amount: the total in pico-dollars.
    """

    what: str
    tokens: int
    price: int
    amount: int


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a request; without lines if the model has no price.

    Attributes:
        lines: the items with at least one token.
    """

    lines: tuple[BillLine, ...] = ()

    @property
    def total(self) -> int:
        """The total in pico-dollars."""
        return sum(line.amount for line in self.lines)


def bill_request(model: SimModel, usage: BilledUsage, at: float) -> Bill:
    """Return the bill of a request that arrived at `at`, in seconds since 1970."""
    price = model.price_for(usage.input, at)
    if price is None:
        return Bill()
    items = [
        ("input", usage.fresh, price.input),
        ("cache_read", usage.read, price.read),
        *(
            (f"cache_write_{ttl}", count, price.written.get(ttl, price.input))
            for ttl, count in usage.written.items()
        ),
        ("output", usage.output, price.output),
    ]
    return Bill(tuple(BillLine(what, count, each, count * each) for what, count, each in items if count))


def bill_storage(model: SimModel, tokens: int, seconds: float, at: float) -> Bill:
    """Return the storage cost of an explicit cache, rounded up; a negative time is a refund."""
    price = model.price_for(tokens, at)
    if price is None:
        return Bill()
    microseconds = round(seconds * 1_000_000)
    amount = -(-tokens * price.hour * microseconds // (SECONDS_PER_HOUR * 1_000_000))
    return Bill((BillLine("cache_storage", tokens, price.hour, amount),))


@dataclass(frozen=True, slots=True)
class UsageAccount:
    """The usage of one model by one key.

    Attributes:
        key: the fingerprint of the key.
        model: the model name, as requested.
        requests: number of answered requests.
        usage: their tokens.
        amount: their cost in pico-dollars.
    """

    key: str
    model: str
    requests: int = 0
    usage: BilledUsage = field(default_factory=BilledUsage)
    amount: int = 0


class UsageLedger:
    """Accounts of all keys.

    Args:
        table: the storage.
    """

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def __iter__(self) -> Iterator[UsageAccount]:
        """Iterate over all accounts, by key and model."""
        for name in sorted(self._table):
            key, _, model = name.partition(" ")
            yield self.account(key, model)

    def account(self, key: str, model: str) -> UsageAccount:
        """Return the usage of a model by a key.

        Args:
            key: the fingerprint of the key.
            model: the model name.
        """
        row: dict[str, Any] = self._table.get(f"{key} {model}") or {}
        usage = BilledUsage(**row.get("usage", {}))
        return UsageAccount(key, model, row.get("requests", 0), usage, row.get("amount", 0))

    def add_request(self, key: str, model: str, usage: BilledUsage, charged: Bill) -> None:
        """Add an answered request."""
        known = self.account(key, model)
        self._put(replace(known, requests=known.requests + 1, usage=_add_usage(known.usage, usage)), charged)

    def add_charge(self, key: str, model: str, charged: Bill) -> None:
        """Add a cost without an answer."""
        self._put(self.account(key, model), charged)

    def _put(self, account: UsageAccount, charged: Bill) -> None:
        row = {
            "requests": account.requests,
            "usage": {name: getattr(account.usage, name) for name in _USAGE_FIELDS},
            "amount": account.amount + charged.total,
        }
        self._table.put(f"{account.key} {account.model}", row)


def _add_usage(one: BilledUsage, other: BilledUsage) -> BilledUsage:
    written = dict(one.written)
    for ttl, tokens in other.written.items():
        written[ttl] = written.get(ttl, 0) + tokens
    return BilledUsage(
        fresh=one.fresh + other.fresh,
        read=one.read + other.read,
        written=written,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
    )


class _TableLookup(Protocol):
    def __getitem__(self, name: str) -> StateTable: ...


class Meter:
    """Meter that combines context limits, prompt caches, rate limits and bills.

    Args:
        script: its rate limits apply.
        tables: the state of the simulator; the meter uses `cache`, `cachedContents`, `limits` and `bills`.

    Attributes:
        ledger: the accounts of all keys.
    """

    def __init__(self, script: Script, tables: _TableLookup) -> None:
        self._limits = RateLimits(script.limits, tables["limits"])
        self._caches = SimPromptCaches(tables["cache"], tables["cachedContents"])
        self.ledger = UsageLedger(tables["bills"])

    def apply_limits(self, script: Script) -> None:
        """Apply the limits of another script; usage is preserved."""
        self._limits.replace_limits(script.limits)

    def admit(self, request: SimRequest, now: float) -> AdmittedRequest:
        """Admit a request.

        Args:
            request: the request; `AdmittedRequest.on_finished` or `AdmittedRequest.on_abandoned` must follow.
            now: the time of the request, in seconds since 1970.

        Raises:
            ApiError: the request is too long, has invalid cache controls, or exceeds a limit.
        """
        model = load_models().find(request.model, request.api)
        _check_size(model, request)
        key = fingerprint(request.key)
        visit = self._caches.begin_visit(model, key, request.prompt, now)
        reserved = BilledUsage(visit.fresh, visit.read, visit.written, request.max_tokens or 0)
        admission = self._limits.admit(key, request.model, reserved, now)
        visit.on_accepted()
        return AdmittedRequest(model, key, visit, admission, self.ledger, now)

    def remaining_limits(self, request: SimRequest, now: float) -> RateAllowance | None:
        """Return the remaining limits for a rejected request; None without limits."""
        return self._limits.remaining_limits(fingerprint(request.key), request.model, now)


class AdmittedRequest:
    """An admitted request. The methods report its progress.

    Attributes:
        model: the data of its model.
    """

    def __init__(
        self,
        model: SimModel,
        key: str,
        visit: SimCacheVisit,
        admission: RateAdmission,
        ledger: UsageLedger,
        now: float,
    ) -> None:
        self.model = model
        self._key = key
        self._visit = visit
        self._admission = admission
        self._ledger = ledger
        self._begun = now
        self._usage = self.usage(0)
        self._started = self._ended = False

    def usage(self, output_tokens: int, reasoning_tokens: int = 0) -> BilledUsage:
        """Return the usage for an answer of this length. The last call determines the bill.

        Args:
            output_tokens: all output tokens, including reasoning.
            reasoning_tokens: the reasoning tokens.
        """
        visit = self._visit
        self._usage = BilledUsage(
            visit.fresh,
            visit.read,
            dict(visit.written),
            output_tokens,
            reasoning_tokens,
        )
        return self._usage

    @property
    def bill(self) -> Bill:
        """The cost of the usage known so far."""
        return bill_request(self.model, self._usage, self._begun)

    def remaining_limits(self, now: float) -> RateAllowance | None:
        """Return the remaining limits; None without limits."""
        return self._admission.remaining_limits(now)

    def on_started(self, now: float) -> None:  # noqa: ARG002 - part of the common signature
        """Handle the first byte of the answer."""
        if not self._started:
            self._started = True
            self._visit.on_started()

    def on_finished(self, now: float, answer: Sequence[SimBlock] = ()) -> None:
        """Handle the end of the answer.

        Args:
            now: the time.
            answer: the answer as blocks of a prompt that repeats it; without them the answer is not cached,
                although some providers cache answers.
        """
        self.on_started(now)
        if self._close(now):
            self._visit.on_finished(now, answer)

    def on_abandoned(self, now: float | None = None) -> None:
        """Handle an answer that failed or lost its reader.

        An answer that has started is paid for, to the extent that its usage is known; one that has not
        started is free.
        """
        if not self._started:
            self._usage = BilledUsage()
        self._close(self._begun if now is None else now)

    def _close(self, now: float) -> bool:
        if self._ended:
            return False
        self._ended = True
        self._admission.settle(self._usage, now)
        if self._started:
            self._ledger.add_request(self._key, self.model.name, self._usage, self.bill)
        return True


def _check_size(model: SimModel, request: SimRequest) -> None:
    tokens, most = request.prompt.tokens, model.context
    if most is None or tokens <= most:
        return
    match request.api:
        case Api.ANTHROPIC:
            raise _too_long_error(f"prompt is too long: {tokens} tokens > {most} maximum")
        case Api.GEMINI:
            raise _too_long_error(
                f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most}).",
            )
        case _:
            raise _too_long_error(
                f"This model's maximum context length is {most} tokens. However, your messages resulted in "
                f"{tokens} tokens. Please reduce the length of the messages.",
                "messages",
                "context_length_exceeded",
            )


def _too_long_error(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(ApiErrorKind.INVALID_REQUEST, message, param=param, code=code)
