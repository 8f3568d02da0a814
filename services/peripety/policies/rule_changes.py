"""How two sequences of rules differ, as changes by their ids."""

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
    """The changes of rules: those that are gone, then the others in their new order.

    As the order of rules decides, a rule that only stands elsewhere was updated as well.

    Args:
        before: the rules before.
        after: the rules after.
        reasoning: why, for the record.
        first: where the first of the rules stands in its document.
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
    """The ids that are in the same order as before, most of them."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {rule_id for block in blocks for rule_id in before[block.a : block.a + block.size]}
