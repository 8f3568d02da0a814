"""Budgets: reserve before a call, settle after it."""
