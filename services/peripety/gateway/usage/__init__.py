"""Usage statistics: tokens and cost, by provider, model, conversation and day."""

from peripety.gateway.usage.book import UsageBook
from peripety.gateway.usage.model import Dimension, Group, UsageQuery, UsageRow
from peripety.gateway.usage.store import UsageStore

__all__ = ["Dimension", "Group", "UsageBook", "UsageQuery", "UsageRow", "UsageStore"]
