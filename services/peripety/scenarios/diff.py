"""What differs between two specifications, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from peripety.scenarios.model import RuleEdit, RuleEditKind
from peripety.sim.schema import pointer

__all__ = ["rule_edits"]

_Parts: TypeAlias = "dict[tuple[str, ...], tuple[str, Any]]"


def rule_edits(before: Any, after: Any) -> tuple[RuleEdit, ...]:
    """The differences between two documents, which need not be valid: in the new one's order, removals last.

    Rules are matched by their ids, everything else by its key.
    """
    old, new = dict(_parts(before)), dict(_parts(after))
    edits = [
        _edit(
            RuleEditKind.CHANGED if name in old else RuleEditKind.ADDED,
            name,
            path,
            old.get(name, (path, None))[1],
            part,
        )
        for name, (path, part) in new.items()
        if name not in old or old[name][1] != part
    ]
    edits += [
        _edit(RuleEditKind.REMOVED, name, path, part, None)
        for name, (path, part) in old.items()
        if name not in new
    ]
    return tuple(edits)


def _parts(document: Any) -> Iterator[tuple[tuple[str, ...], tuple[str, Any]]]:
    """The rules and keys of a document: a name that outlives a move, and then pointer and content."""
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if _is_rules(value):
            for index, rule in enumerate(value):
                yield (key, rule["id"]), (pointer((key, index)), rule)
        else:
            yield (key,), (pointer((key,)), value)


def _is_rules(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(rule, dict) and isinstance(rule.get("id"), str) for rule in value)
    )


def _edit(kind: RuleEditKind, name: tuple[str, ...], path: str, before: Any, after: Any) -> RuleEdit:
    return RuleEdit(
        kind,
        path,
        None if kind is RuleEditKind.ADDED else _json(before),
        None if kind is RuleEditKind.REMOVED else _json(after),
        f"{kind.value} {' '.join(name)}",
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
