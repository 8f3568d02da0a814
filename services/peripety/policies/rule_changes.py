"""Diff of two rule lists by rule id."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from peripety.policies.model import RulePatch, RulePatchKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["rule_changes"]

_MOVED = "it was moved among the others"


def rule_changes(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    reasoning: str = "",
    *,
    first: int = 0,
) -> Iterator[RulePatch]:
    """Yield the changes of rules: deleted ones first, then the others in their new order.

    A rule that only moved counts as updated, because the order of rules affects decisions.

    Args:
        before: the rules before.
        after: the rules after.
        reasoning: the reason, for the audit log.
        first: index in the document of the first of the rules.
    """
    old, new = {rule["id"]: rule for rule in before}, {rule["id"]: rule for rule in after}
    for position, (rule_id, rule) in enumerate(old.items(), first):
        if rule_id not in new:
            yield RulePatch(RulePatchKind.DELETE, rule_id, rule, None, position, reasoning)
    stayed = _stayed([one for one in old if one in new], [one for one in new if one in old])
    for position, (rule_id, rule) in enumerate(new.items(), first):
        if rule_id not in old:
            yield RulePatch(RulePatchKind.ADD, rule_id, None, rule, position, reasoning)
        elif old[rule_id] != rule or rule_id not in stayed:
            why = reasoning if rule_id in stayed else "; ".join(filter(None, (reasoning, _MOVED)))
            yield RulePatch(RulePatchKind.UPDATE, rule_id, old[rule_id], rule, position, why)


def _stayed(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Return the ids in a longest common order of both lists."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {rule_id for block in blocks for rule_id in before[block.a : block.a + block.size]}
