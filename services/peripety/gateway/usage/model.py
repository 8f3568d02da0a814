"""What is kept of usage: sums for each hour, never a single call."""

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
    """What usage can be grouped by."""

    PROVIDER = "provider"
    MODEL = "model"
    CONVERSATION = "conversation"
    DAY = "day"


class UsageKey(NamedTuple):
    """What one sum is of.

    Attributes:
        hour: when, in hours since 1970.
        provider: who was asked.
        model: which model, without its snapshot.
        conversation_id: for which conversation; empty for none.
    """

    hour: int
    provider: str
    model: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Sums:
    """What was used.

    Attributes:
        spent: calls, tokens and money.
        counted: what of budgets it counts for: more than was spent where that is not known.
        hits: answers from the response cache, with no call.
    """

    spent: Spent = field(default_factory=Spent)
    counted: Amount = field(default_factory=Amount)
    hits: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(self.spent + other.spent, self.counted + other.counted, self.hits + other.hits)


def hour_of(moment: datetime, rounding: Callable[[float], int] = floor) -> int:
    """Return the hour that a moment is in, or the next whole one, in hours since 1970."""
    return rounding(moment.timestamp() / _HOUR)


def key_of(moment: datetime, provider: str, model: str, conversation_id: str | None) -> UsageKey:
    """Return which sum belongs to a moment, a model as its provider names it, and a conversation, if any."""
    # A server may give itself any name, and no database takes any text for a key.
    return UsageKey(hour_of(moment), provider, class_of(model)[:_LONGEST_NAME], conversation_id or "")


def sums_of(report: CallReport) -> tuple[UsageKey, Sums]:
    """Return what a call adds to which sum."""
    key = key_of(report.begun, report.provider, report.model, report.conversation_id)
    cost = report.cost
    spent = Spent(
        1, report.usage, None if cost is None else cost.total, None if cost is None else cost.cache_savings
    )
    counted = report.counted
    return key, Sums(spent, Amount(1, counted.input_tokens + counted.output_tokens, counted.cost or 0))


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which usage to sum.

    Attributes:
        start: from when on; None for the beginning. A time is widened to whole hours.
        end: until before when; None for now.
        group_by: one row for each combination of these.
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
    """What a row is of; only the dimensions that were asked for are set.

    Attributes:
        provider: the provider.
        model: the model, without its snapshot.
        conversation_id: the conversation; empty for requests outside of one.
        day: the beginning of the day, in UTC.
    """

    provider: str = ""
    model: str = ""
    conversation_id: str = ""
    day: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One sum.

    Attributes:
        group: what it is of.
        spent: calls, tokens and money.
        hits: answers from the response cache, with no call.
    """

    group: Group
    spent: Spent
    hits: int
