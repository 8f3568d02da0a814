"""The simulator's clock: for TTLs, limits, prices and timestamps, but not for delays on the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError
from peripety.simulator.scenario.model import ClockMode

if TYPE_CHECKING:
    from peripety.simulator.scenario.model import Scenario
    from peripety.simulator.state import Table

__all__ = ["Clock"]

_NOW = "now"
_LATEST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()  # later times cannot be formatted as dates


class Clock:
    """Clock in seconds since 1970: the machine's clock, or a virtual one that only moves on request.

    Args:
        scenario: selects the clock, and the start of the virtual one.
        table: stores the virtual time.
    """

    def __init__(self, scenario: Scenario, table: Table) -> None:
        self._virtual = scenario.clock is ClockMode.VIRTUAL
        self._start = scenario.start.timestamp()
        self._table = table

    def now(self) -> float:
        """Return the current time."""
        if not self._virtual:
            return time.time()
        now: float | None = self._table.get(_NOW)
        return self._start if now is None else now

    def advance(self, seconds: float) -> float:
        """Advance the virtual clock and return the new time.

        Raises:
            InvalidArgumentError: the step is negative, or ends beyond the year 8999.
            FailedPreconditionError: the clock is the machine's.
        """
        if not self._virtual:
            raise FailedPreconditionError(
                'the clock is the machine\'s; a scenario with clock = "virtual" has one that can be moved'
            )
        if not 0 <= seconds < float("inf"):
            violation = FieldViolation("seconds", f"{seconds} is not a non-negative number of seconds")
            raise InvalidArgumentError("the clock only moves forwards", violations=(violation,))
        now = self.now() + seconds
        if now >= _LATEST:
            violation = FieldViolation("seconds", f"{seconds} exceeds the year 8999")
            raise InvalidArgumentError("the clock ends with the year 8999", violations=(violation,))
        self._table.put(_NOW, now)
        return now
