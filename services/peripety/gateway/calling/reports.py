"""What became of a call of a provider: for the log, and for whoever adds usage up."""

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
    """A request that was sent to a provider.

    Attributes:
        provider: the provider.
        model: the model that answered, else the one that was asked, as the provider names it.
        conversation_id: the conversation that it continued; None for none.
        outcome: `OK`, the code of the error, or `CANCELLED` when its caller left.
        begun: when it was sent.
        seconds: how long it took.
        counted: what it counts for in limits and budgets: what it used, or may have used.
        usage: its tokens as the provider reported them; all zero when it did not.
        cost: what it cost; None when that is not known.
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
    """Write a line about a call: figures and names, never what was said."""
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
