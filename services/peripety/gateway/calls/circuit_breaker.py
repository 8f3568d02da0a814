"""Circuit breaker: stops calls to a failing provider, and probes whether it has recovered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


_PROBE_RETRY_SECONDS = 1.0


class BreakerOutcome(Enum):
    """Outcome of a call, from the view of the circuit breaker."""

    SUCCEEDED = "worked"
    FAILED = "failed"
    NEUTRAL = "unknown"
    """The caller left, or the request was invalid: no evidence about the provider."""


class CircuitState(Enum):
    """State of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerThresholds:
    """Thresholds at which a circuit breaker opens and closes.

    Attributes:
        failures: consecutive failures that open it.
        open_seconds: how long it rejects all calls after that.
        successes: consecutive successes that close it again, and the maximum number of probes in flight.
    """

    failures: int = 5
    open_seconds: float = 60.0
    successes: int = 2


class CircuitBreaker:
    """Circuit breaker of one provider. Closed passes every call, open none, half-open a few probes.

    It counts consecutive failures instead of a failure rate. An outage then opens it after the same few
    calls, no matter how busy the time before was or how slowly the failures arrive.

    A call reports to the period in which it started. Reports from earlier periods are ignored, because they
    describe an outdated state of the provider.

    Args:
        provider: name of the provider in errors.
        thresholds: when to open and close.
        now: clock, in seconds.
    """

    def __init__(self, provider: str, thresholds: BreakerThresholds, now: Callable[[], float]) -> None:
        self._provider = provider
        self._thresholds = thresholds
        self._now = now
        self._period = 0
        self._opened_at: float | None = None
        self._failures = 0
        self._successes = 0
        self._probes = 0

    @property
    def is_open(self) -> bool:
        """Return True if the provider has failed and has not yet recovered."""
        return self._opened_at is not None

    @property
    def state(self) -> CircuitState:
        """Return the current state."""
        if self._opened_at is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if self._seconds_open() > 0 else CircuitState.HALF_OPEN

    @property
    def failures(self) -> int:
        """Return the number of consecutive failures in the current period."""
        return self._failures

    @property
    def retry_delay(self) -> float | None:
        """Return the seconds until the next call can pass; None if calls pass now."""
        seconds = self._seconds_open()
        if seconds > 0:
            return seconds
        return _PROBE_RETRY_SECONDS if self._is_probing_enough() else None

    def raise_if_open(self) -> None:
        """Raise if a call would be rejected now.

        Raises:
            UnavailableError: the breaker is open (code PROVIDER_CIRCUIT_OPEN).
        """
        delay = self.retry_delay
        if delay is not None:
            raise self._open_error(delay)

    def _seconds_open(self) -> float:
        """Return the seconds until the breaker is half-open; 0 if it is not open."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._thresholds.open_seconds - self._now())

    def _is_probing_enough(self) -> bool:
        is_open = self._opened_at is not None
        return is_open and self._probes + self._successes >= self._thresholds.successes

    def acquire(self) -> int:
        """Admit a call, or raise the error of `check`.

        Returns:
            The current period, to be passed to `leave`.
        """
        self.raise_if_open()
        if self._opened_at is not None:
            self._probes += 1
        return self._period

    def release(self, period: int, outcome: BreakerOutcome) -> None:
        """Report the end of an admitted call."""
        if period != self._period:
            return
        if self._opened_at is not None:
            self._probes -= 1
        match outcome:
            case BreakerOutcome.FAILED:
                self._record_failure()
            case BreakerOutcome.SUCCEEDED:
                self._record_success()

    def _record_failure(self) -> None:
        self._failures += 1
        if self._opened_at is not None or self._failures >= self._thresholds.failures:
            self._start_period(self._now())

    def _record_success(self) -> None:
        self._failures = 0
        if self._opened_at is not None:
            self._successes += 1
            if self._successes >= self._thresholds.successes:
                self._start_period(None)

    def _start_period(self, opened: float | None) -> None:
        """Start a new period: open since `opened`, or closed."""
        self._period += 1
        self._opened_at = opened
        self._failures = self._successes = self._probes = 0

    def _open_error(self, seconds: float) -> UnavailableError:
        return UnavailableError(
            f"provider {self._provider}: circuit breaker open after repeated failures; try again later",
            code="PROVIDER_CIRCUIT_OPEN",
            retry_after=seconds,
        )
