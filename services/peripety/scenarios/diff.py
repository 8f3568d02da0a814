"""What differs between two specifications, rule by rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.scenarios.model import RuleEdit, RuleEditKind
from peripety.scenarios.parts import parts

if TYPE_CHECKING:
    from peripety.scenarios.parts import Part

__all__ = ["rule_edits"]


def rule_edits(before: Any, after: Any) -> tuple[RuleEdit, ...]:
    """The differences between two documents, which need not be valid: in the new one's order, removals last.

    Parts are matched by their names, see `parts`.
    """
    old = {part.name: part for part in parts(before)}
    new = {part.name: part for part in parts(after)}
    edits = []
    for name, part in new.items():
        if name not in old:
            edits.append(_edit(RuleEditKind.ADDED, part, after=_json(part.value)))
        elif old[name].value != part.value:
            was = _json(old[name].value)
            edits.append(_edit(RuleEditKind.CHANGED, part, before=was, after=_json(part.value)))
    for name, part in old.items():
        if name not in new:
            edits.append(_edit(RuleEditKind.REMOVED, part, before=_json(part.value)))
    return tuple(edits)


def _edit(
    kind: RuleEditKind,
    part: Part,
    *,
    before: bytes | None = None,
    after: bytes | None = None,
) -> RuleEdit:
    return RuleEdit(kind, part.path, before, after, f"{kind.value} {' '.join(part.name)}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
