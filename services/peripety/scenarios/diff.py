"""What differs between two specifications, rule by rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.scenarios.model import RuleEdit, RuleEditKind
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rule_edits"]


def rule_edits(before: Any, after: Any) -> tuple[RuleEdit, ...]:
    """The differences between two documents, which need not be valid: in the new one's order, removals last.

    Rules are matched by their ids, everything else by its key.
    """
    old, new = dict(_parts(before)), dict(_parts(after))
    edits = []
    for name, (path, part) in new.items():
        if name not in old:
            edits.append(_edit(RuleEditKind.ADDED, name, path, after=_json(part)))
        elif old[name][1] != part:
            was = _json(old[name][1])
            edits.append(_edit(RuleEditKind.CHANGED, name, path, before=was, after=_json(part)))
    for name, (path, part) in old.items():
        if name not in new:
            edits.append(_edit(RuleEditKind.REMOVED, name, path, before=_json(part)))
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


def _edit(
    kind: RuleEditKind,
    name: tuple[str, ...],
    path: str,
    *,
    before: bytes | None = None,
    after: bytes | None = None,
) -> RuleEdit:
    return RuleEdit(kind, path, before, after, f"{kind.value} {' '.join(name)}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
