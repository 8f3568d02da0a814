"""Budgets of requests, conversations and days; checked before each provider call."""

from peripety.gateway.calling.budgets.ledger import MemoryLedger, NoHistory
from peripety.gateway.calling.budgets.model import Amount, BudgetKind, History, Hold, Ledger, Refused, Scope
from peripety.gateway.calling.budgets.purse import Budgets, Held, Purse
from peripety.gateway.calling.budgets.remaining import remaining
from peripety.gateway.calling.budgets.time import within

__all__ = [
    "Amount",
    "BudgetKind",
    "Budgets",
    "Held",
    "History",
    "Hold",
    "Ledger",
    "MemoryLedger",
    "NoHistory",
    "Purse",
    "Refused",
    "Scope",
    "remaining",
    "within",
]
