"""Stops asking a provider that fails, and finds out when it works again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Breaker", "Outcome", "Thresholds"]

_PROBE_SECONDS = 1.0


class Outcome(Enum):
    """What a call says about its provider."""

    WORKED = "worked"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The caller left, or the request was at fault: this says nothing about the provider."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a breaker opens and closes.

    Attributes:
        failures: so many in a row, with no success between them, open it.
        open_seconds: how long it lets nobody through then.
        successes: so many in a row close it again; no more calls than that are let through to try.
    """

    failures: int = 5
    open_seconds: float = 60.0
    successes: int = 2


class Breaker:
    """Closed, it lets every call through; open, none; half open, a few to try.

    Failures are counted in a row and not by their share of the calls of some time: an outage then opens it
    after the same few calls, however busy the time before was, and however slowly the failures come.

    A call reports to the state that let it through. What a call from before a change of state reports is
    ignored: it tells of a provider that was.

    Args:
        provider: what to call the provider in errors.
        thresholds: when to open and to close.
        now: tells the time in seconds.
    """

    def __init__(self, provider: str, thresholds: Thresholds, now: Callable[[], float]) -> None:
        self._provider = provider
        self._thresholds = thresholds
        self._now = now
        self._period = 0
        self._opened: float | None = None
        self._failures = 0
        self._successes = 0
        self._probes = 0

    @property
    def is_open(self) -> bool:
        """Whether the provider has failed and has not yet been seen to work again."""
        return self._opened is not None

    def check(self) -> None:
        """Raise if a call would not be let through now.

        Raises:
            UnavailableError: the breaker is open (code PROVIDER_CIRCUIT_OPEN).
        """
        if self._opened is None:
            return
        left = self._opened + self._thresholds.open_seconds - self._now()
        if left > 0:
            raise self._refusal(left)
        if self._probes + self._successes >= self._thresholds.successes:
            raise self._refusal(_PROBE_SECONDS)

    def enter(self) -> int:
        """Let a call through, or raise what `check` raises.

        Returns:
            What `leave` wants to know: the period of the breaker's life that the call belongs to.
        """
        self.check()
        if self._opened is not None:
            self._probes += 1
        return self._period

    def leave(self, period: int, outcome: Outcome) -> None:
        """Report the end of a call that was let through."""
        if period != self._period:
            return
        if self._opened is not None:
            self._probes -= 1
        match outcome:
            case Outcome.FAILED:
                self._failed()
            case Outcome.WORKED:
                self._worked()

    def _failed(self) -> None:
        self._failures += 1
        if self._opened is not None or self._failures >= self._thresholds.failures:
            self._begin(self._now())

    def _worked(self) -> None:
        self._failures = 0
        if self._opened is not None:
            self._successes += 1
            if self._successes >= self._thresholds.successes:
                self._begin(None)

    def _begin(self, opened: float | None) -> None:
        """Begin another period, open since a moment or closed."""
        self._period += 1
        self._opened = opened
        self._failures = self._successes = self._probes = 0

    def _refusal(self, seconds: float) -> UnavailableError:
        return UnavailableError(
            f"The {self._provider} server failed too often and is left alone for a while; try again later",
            code="PROVIDER_CIRCUIT_OPEN",
            retry_after=seconds,
        )
