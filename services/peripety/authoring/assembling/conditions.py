"""Conditions of rules, with a language-neutral label for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Condition", "Logic", "all_of", "comparison", "variable"]

Logic = dict[str, Any]

_SIGNS = {">=": "\u2265", "<=": "\u2264", ">": ">", "<": "<"}


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a rule, with its label in symbols."""

    logic: Logic
    shown: str


def variable(path: str) -> Logic:
    """Return the expression that reads the value at a path."""
    return {"var": path}


def comparison(path: str, shown: str, operator: str, amount: float) -> Condition:
    """Return the condition that compares a value with a number.

    Args:
        path: path of the value.
        shown: the label of the value.
        operator: `>=`, `<=`, `>` or `<`.
        amount: the number on the right-hand side.
    """
    return Condition({operator: [variable(path), amount]}, f"{shown} {_SIGNS[operator]} {amount}")


def all_of(*conditions: Condition) -> Condition:
    """Return the conjunction of the conditions; always true for an empty list."""
    if len(conditions) == 1:
        return conditions[0]
    logic = {"and": [condition.logic for condition in conditions]} if conditions else {}
    return Condition(logic, ", ".join(condition.shown for condition in conditions))
