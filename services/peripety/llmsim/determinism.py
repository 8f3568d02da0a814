"""Determinism of the scripted LLM: seeded random numbers, ids, signatures, and the simulated clock.

They are functions of the seed, the conversation and the number of its request. No other conversation has an
influence. A conversation therefore gets the same answers, byte for byte, in every run, in every order and
after every restart.

The clock is for TTLs, limits, prices and timestamps, but not for delays on the wire.
"""

from __future__ import annotations

import base64
import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from peripety import engine
from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError
from peripety.llmsim.script.types import ClockMode

if TYPE_CHECKING:
    from peripety.llmsim.script.types import Script
    from peripety.llmsim.state import StateTable


_ID_LENGTH = 24
_SIGNATURE_BYTES = 18


@dataclass(frozen=True, slots=True)
class SeededRng:
    """Random numbers of one request.

    Attributes:
        seed: the seed of the script.
        scope: the conversation.
        number: the number of the request in the conversation.
    """

    seed: int
    scope: str
    number: int

    def draw(self, purpose: str, index: int = 0) -> int:
        """Return an unsigned 64-bit integer that depends only on the purpose and the index."""
        return engine.draw(self.seed, f"{self.scope}/{purpose}", self.number, index)

    def id(self, purpose: str = "") -> str:
        """Return a unique id of 24 letters and digits."""
        text = f"{self.seed}/{self.scope}/{self.number}/{purpose}"
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


def make_signature(text: str) -> str:
    """Return an opaque signature for reasoning text, as some APIs issue it and require it back."""
    body = hashlib.sha256(text.encode()).digest()[:_SIGNATURE_BYTES]
    return base64.b64encode(body + hashlib.sha256(body).digest()[:_SIGNATURE_BYTES]).decode()


def is_own_signature(value: str) -> bool:
    """Return True if a signature was issued by this simulator."""
    try:
        whole = base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return (
        len(whole) == 2 * _SIGNATURE_BYTES
        and hashlib.sha256(whole[:_SIGNATURE_BYTES]).digest()[:_SIGNATURE_BYTES] == whole[_SIGNATURE_BYTES:]
    )


_TIME_KEY = "now"
_MAX_TIME = datetime(9000, 1, 1, tzinfo=UTC).timestamp()  # later times cannot be formatted as dates


class SimClock:
    """Clock in seconds since 1970: the machine's clock, or a virtual one that only moves on request.

    Args:
        script: selects the clock, and the start of the virtual one.
        table: stores the virtual time.
    """

    def __init__(self, script: Script, table: StateTable) -> None:
        self._virtual = script.clock is ClockMode.VIRTUAL
        self._start = script.start.timestamp()
        self._table = table

    def now(self) -> float:
        """Return the current time."""
        if not self._virtual:
            return time.time()
        now: float | None = self._table.get(_TIME_KEY)
        return self._start if now is None else now

    def advance(self, seconds: float) -> float:
        """Advance the virtual clock and return the new time.

        Raises:
            InvalidArgumentError: the step is negative, or ends beyond the year 8999.
            FailedPreconditionError: the clock is the machine's.
        """
        if not self._virtual:
            raise FailedPreconditionError(
                'the clock is the machine\'s; a script with clock = "virtual" has one that can be moved',
            )
        if not 0 <= seconds < float("inf"):
            violation = FieldViolation("seconds", f"{seconds} is not a non-negative number of seconds")
            raise InvalidArgumentError("the clock only moves forwards", violations=(violation,))
        now = self.now() + seconds
        if now >= _MAX_TIME:
            violation = FieldViolation("seconds", f"{seconds} exceeds the year 8999")
            raise InvalidArgumentError("the clock ends with the year 8999", violations=(violation,))
        self._table.put(_TIME_KEY, now)
        return now
