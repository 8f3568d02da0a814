"""Call log: one record per provider request, for the log and the usage statistics."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.gateway.calling.counters import Demand
    from peripety.gateway.catalogue import Cost
    from peripety.gateway.model import Usage

__all__ = ["CallReport", "log_call"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallReport:
    """Record of a request that was sent to a provider.

    Attributes:
        provider: the provider.
        model: the model that answered, else the requested one, in the provider's spelling.
        conversation_id: the conversation that it continued; None for none.
        outcome: `OK`, the error code, or `CANCELLED` if the caller left.
        begun: start time.
        seconds: duration.
        counted: the usage that counts towards limits and budgets, actual or assumed.
        usage: tokens reported by the provider; all zero if it reported none.
        cost: the cost; None if unknown.
    """

    provider: str
    model: str
    conversation_id: str | None
    outcome: str
    begun: datetime
    seconds: float
    counted: Demand
    usage: Usage
    cost: Cost | None


def log_call(report: CallReport) -> None:
    """Log a call: numbers and names only, never its content."""
    _log.info(
        "provider call",
        extra={
            "provider": report.provider,
            "model": report.model,
            "outcome": report.outcome,
            "ms": round(report.seconds * 1000),
            "input_tokens": report.usage.input_tokens,
            "output_tokens": report.usage.output_tokens,
            "cache_read_tokens": report.usage.cache_read_tokens,
            "cache_write_tokens": report.usage.cache_write_tokens,
            "cost_pico_dollars": None if report.cost is None else report.cost.total,
        },
    )
