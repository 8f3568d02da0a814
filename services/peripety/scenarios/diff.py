"""Semantic diff of two specifications, rule by rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.scenarios.model import RuleEdit, RuleEditKind
from peripety.scenarios.parts import parts
from peripety.scenarios.telling import content, difference, subject

if TYPE_CHECKING:
    from peripety.scenarios.parts import Part

__all__ = ["rule_edits"]


def rule_edits(before: Any, after: Any) -> tuple[RuleEdit, ...]:
    """Return the differences between two documents, valid or not: in the order of the new one, removals last.

    Parts are matched by name, not by position.
    """
    old = {part.name: part for part in parts(before)}
    new = {part.name: part for part in parts(after)}
    edits = []
    for name, part in new.items():
        if name not in old:
            summary = f"{subject(name)} added: {content(name, part.value)}"
            edits.append(RuleEdit(RuleEditKind.ADDED, part.path, None, _json(part.value), summary))
        elif old[name].value != part.value:
            edits.append(_changed(part, old[name].value))
    for name, part in old.items():
        if name not in new:
            summary = f"{subject(name)} removed"
            edits.append(RuleEdit(RuleEditKind.REMOVED, part.path, _json(part.value), None, summary))
    return tuple(edits)


def _changed(part: Part, before: Any) -> RuleEdit:
    told = difference(part.name, before, part.value)
    # A number follows its label without a colon.
    colon = ":" if isinstance(part.value, dict) else ""
    summary = f"{subject(part.name)}{colon} {told}"
    return RuleEdit(RuleEditKind.CHANGED, part.path, _json(before), _json(part.value), summary)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
