"""Limits of an enforcement point, beside the policy: a rate of forwarded calls, and a circuit breaker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of events in a sliding time.

    Attributes:
        count: the maximum number of events.
        seconds: the time.
    """

    count: int
    seconds: float

    def __str__(self) -> str:
        """Return the limit in words."""
        return f"{self.count} in {self.seconds:g} s"


class CallLimits:
    """Rate and circuit breaker of all calls of an enforcement point.

    Args:
        now: returns seconds since 1970.
        rate: the maximum number of forwarded calls; None for no limit.
        breaker: the number of refused calls that closes all tools, until its time has passed; None for none.
            An agent whose calls are refused again and again is confused or attacked.
    """

    def __init__(
        self, now: Callable[[], float], rate: Limit | None = None, breaker: Limit | None = None
    ) -> None:
        self._now = now
        self._rate = rate
        self._breaker = breaker
        self._forwarded: deque[float] = deque()
        self._refused: deque[float] = deque()
        self._open_until = 0.0

    def find_closure(self) -> str | None:
        """Return the reason why no call may be forwarded now; None if a call may be."""
        now = self._now()
        if now < self._open_until:
            return (
                f"the circuit breaker is open: more than {self._breaker} were refused;"
                f" all tools are closed for {self._open_until - now:,.0f} s"
            )
        if (
            self._rate is not None
            and _count_recent(self._forwarded, now - self._rate.seconds) >= self._rate.count
        ):
            return f"the rate is used up: at most {self._rate}"
        return None

    def count_forwarded(self) -> None:
        """Count a call that goes to its tool."""
        if self._rate is not None:
            self._forwarded.append(self._now())

    def count_refused(self) -> None:
        """Count a call that the policy or a person refused, and open the breaker if there were too many."""
        if self._breaker is None:
            return
        now = self._now()
        self._refused.append(now)
        if _count_recent(self._refused, now - self._breaker.seconds) > self._breaker.count:
            self._refused.clear()
            self._open_until = now + self._breaker.seconds


def _count_recent(times: deque[float], since: float) -> int:
    """Drop the times up to `since`, and return the number of the others."""
    while times and times[0] <= since:
        times.popleft()
    return len(times)
