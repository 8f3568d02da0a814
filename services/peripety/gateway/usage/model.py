"""Types of usage: sums per hour, never single calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from peripety.gateway.calling.budgets import Amount
from peripety.gateway.catalogue.names import class_of
from peripety.gateway.model import Spent

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from peripety.gateway.calling.reports import CallReport

__all__ = ["Dimension", "Group", "Sums", "UsageKey", "UsageQuery", "UsageRow", "hour_of", "key_of", "sums_of"]

_HOUR = 3600
_LONGEST_NAME = 256


class Dimension(Enum):
    """Dimension by which usage can be grouped."""

    PROVIDER = "provider"
    MODEL = "model"
    CONVERSATION = "conversation"
    DAY = "day"


class UsageKey(NamedTuple):
    """Key of one sum.

    Attributes:
        hour: hours since 1970.
        provider: the provider.
        model: the model family.
        conversation_id: the conversation; empty for none.
    """

    hour: int
    provider: str
    model: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Sums:
    """Usage of one key.

    Attributes:
        spent: calls, tokens and cost.
        counted: what counts towards budgets; more than was spent where the actual usage is unknown.
        hits: answers from the response cache, without a call.
    """

    spent: Spent = field(default_factory=Spent)
    counted: Amount = field(default_factory=Amount)
    hits: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Return the sum of both."""
        return Sums(self.spent + other.spent, self.counted + other.counted, self.hits + other.hits)


def hour_of(moment: datetime, rounding: Callable[[float], int] = floor) -> int:
    """Return the hour of a moment, or the next whole one, in hours since 1970."""
    return rounding(moment.timestamp() / _HOUR)


def key_of(moment: datetime, provider: str, model: str, conversation_id: str | None) -> UsageKey:
    """Return the key of a moment, a model in its provider's spelling, and an optional conversation."""
    # A server may choose any name, and databases do not accept any text as a key.
    return UsageKey(hour_of(moment), provider, class_of(model)[:_LONGEST_NAME], conversation_id or "")


def sums_of(report: CallReport) -> tuple[UsageKey, Sums]:
    """Return the usage of a call, with its key."""
    key = key_of(report.begun, report.provider, report.model, report.conversation_id)
    cost = report.cost
    spent = Spent(
        1, report.usage, None if cost is None else cost.total, None if cost is None else cost.cache_savings
    )
    counted = report.counted
    return key, Sums(spent, Amount(1, counted.input_tokens + counted.output_tokens, counted.cost or 0))


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Query of usage sums.

    Attributes:
        start: start of the period; None for the beginning. Times are widened to whole hours.
        end: end of the period, exclusive; None for now.
        group_by: one row per combination of these dimensions.
        provider: only this one; empty for all.
        model: only this one; empty for all.
        conversation_id: only this one; empty for all.
    """

    start: datetime | None = None
    end: datetime | None = None
    group_by: tuple[Dimension, ...] = ()
    provider: str = ""
    model: str = ""
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Group of a row; only the requested dimensions are set.

    Attributes:
        provider: the provider.
        model: the model family.
        conversation_id: the conversation; empty for requests outside of one.
        day: the start of the day, in UTC.
    """

    provider: str = ""
    model: str = ""
    conversation_id: str = ""
    day: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One sum.

    Attributes:
        group: its group.
        spent: calls, tokens and cost.
        hits: answers from the response cache, without a call.
    """

    group: Group
    spent: Spent
    hits: int
