"""Conditions of rules, and how they read without any language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Condition", "Logic", "all_of", "comparison", "variable"]

Logic = dict[str, Any]

_SIGNS = {">=": "\u2265", "<=": "\u2264", ">": ">", "<": "<"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and how it reads without any language."""

    logic: Logic
    shown: str


def variable(path: str) -> Logic:
    """The value at a path."""
    return {"var": path}


def comparison(path: str, shown: str, operator: str, amount: float) -> Condition:
    """That a value compares like this with an amount.

    Args:
        path: where the value stands.
        shown: how the value reads.
        operator: `>=`, `<=`, `>` or `<`.
        amount: what it is compared with.
    """
    return Condition({operator: [variable(path), amount]}, f"{shown} {_SIGNS[operator]} {amount}")


def all_of(*conditions: Condition) -> Condition:
    """That every one of the conditions holds; always, where there is none."""
    if len(conditions) == 1:
        return conditions[0]
    logic = {"and": [condition.logic for condition in conditions]} if conditions else {}
    return Condition(logic, ", ".join(condition.shown for condition in conditions))
