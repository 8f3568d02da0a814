"""Mutation operators of the logic of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations import logic
from peripety.mutations.changes import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["OPERATORS"]

_PLACE = ("when", "logic")


def _of_rules(operator: Callable[[Any], Iterable[Change]]) -> Callable[[Mapping[str, Any]], Iterator[Change]]:
    def changes(rule: Mapping[str, Any]) -> Iterator[Change]:
        if "logic" in rule["when"]:
            for change in operator(rule["when"]["logic"]):
                yield Change((*_PLACE, *change.place), change.before, change.after)

    return changes


OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    name: _of_rules(operator) for name, operator in logic.OPERATORS.items()
}
"""The operators by name."""
