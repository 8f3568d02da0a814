"""Mutation operator of named lists: drop a value wherever the list is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, changed
from peripety.mutations.steps import some
from peripety.policies.places import own_rules
from peripety.sim.policies.policy import fits_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.mutations.changes import Place
    from peripety.sim import Policy

__all__ = ["drop_list_value"]


def drop_list_value(policy: Policy) -> Iterator[tuple[Place, Any, Any, dict[int, Any]]]:
    """Drop a value of a list: its other values replace the list name in each rule.

    Rules that would exceed the size limit of a document are not mutated.
    """
    lists = policy.spec.get("lists", {})
    named_by = _named_by(lists)
    for name, named in lists.items():
        leading = _leading_to(name, named_by)
        users = [
            (index, rule)
            for index, rule in own_rules(policy)
            if any(leading.intersection(matcher["among"]) for matcher in rule["when"].get("arguments", ()))
        ]
        for index, value in some(named["values"]) if users else ():
            without = {**lists, name: {**named, "values": changed(named["values"], (index,), GONE)}}
            written = ((at, _written_out(rule, leading, without)) for at, rule in users)
            rules = {at: rule for at, rule in written if rule is not None and fits_document(rule)}
            if rules:
                yield ("lists", name, "values", index), value, GONE, rules


def _named_by(lists: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, for each entry that names a list, the lists that contain the entry."""
    found: dict[str, list[str]] = {}
    for name, named in lists.items():
        for entry in named["values"]:
            if entry.startswith("@"):
                found.setdefault(entry, []).append(f"@{name}")
    return found


def _leading_to(name: str, named_by: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the entries that expand to the values of a list, directly or through other lists."""
    found = {f"@{name}"}
    waiting = [*found]
    while waiting:
        more = [entry for entry in named_by.get(waiting.pop(), ()) if entry not in found]
        found.update(more)
        waiting.extend(more)
    return frozenset(found)


def _written_out(
    rule: Mapping[str, Any], leading: frozenset[str], lists: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return a rule with values in place of list names; None if a matcher would be empty."""
    for number, matcher in enumerate(rule["when"]["arguments"]):
        if leading.intersection(matcher["among"]):
            entries = _entries(matcher["among"], leading, lists)
            if not entries:
                return None
            rule = changed(rule, ("when", "arguments", number, "among"), entries)
    return rule


def _entries(among: Sequence[str], leading: frozenset[str], lists: Mapping[str, Any]) -> list[str]:
    """Return entries with lists expanded in place, each once."""
    found: dict[str, None] = {}
    waiting, seen = [*reversed(among)], set()
    while waiting:
        entry = waiting.pop()
        if entry not in leading:
            found[entry] = None
        elif entry not in seen:
            seen.add(entry)
            waiting.extend(reversed(lists[entry[1:]]["values"]))
    return [*found]
