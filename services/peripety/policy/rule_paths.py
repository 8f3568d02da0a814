"""Paths of rules in a policy document, and a diff of two rule lists by rule id.

The module also validates call arguments against the input schema of a tool, and derives neighbours of
matcher values: parent paths, sub-paths and host patterns.
"""

from __future__ import annotations

import json
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from peripety.engine.schema_validation import validate_against_schema
from peripety.policy.types import RulePatch, RulePatchKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import DocumentPath
    from peripety.engine import Policy
    from peripety.errors import Finding


def argument_violations(
    input_schema: Mapping[str, Any] | None,
    arguments: Mapping[str, Any],
) -> list[Finding]:
    """Return the schema violations of call arguments, with their paths.

    Args:
        input_schema: the schema of the tool, as accepted by the validation of a policy document; None accepts
            everything.
        arguments: the arguments of the call.
    """
    return [] if input_schema is None else validate_against_schema(input_schema, arguments, linear=True)


def parent_path(entry: str) -> str | None:
    """Return the parent of a path; None for the root."""
    kept: list[str] = []
    for segment in entry.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return f"/{'/'.join(kept[:-1])}" if kept else None


def child_path(entry: str, name: str) -> str:
    """Return a path below another."""
    return f"{entry.rstrip('/')}/{name}"


def split_host_pattern(kind: str, entry: str) -> tuple[str, str, str]:
    """Split a domain or address pattern into the local part, `*.` or an empty text, and the host."""
    local, _, host = entry.rpartition("@") if kind == "email" else ("", "", entry)
    below = "*." if host.startswith("*.") else ""
    return local, below, host.removeprefix(below)


def enumerate_rules(policy: Policy) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rules without invariants, with their indices in `Policy.rules`."""
    yield from enumerate(policy.spec["rules"], policy.invariants)


def rule_path(policy: Policy, index: int) -> DocumentPath:
    """Return the path in the document of a rule or invariant, given its index in `Policy.rules`."""
    own = index - policy.invariants
    return ("invariants", index) if own < 0 else ("rules", own)


_MOVED_REASON = "it was moved among the others"


def diff_rules(
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
    stayed = _unmoved_ids([one for one in old if one in new], [one for one in new if one in old])
    for position, (rule_id, rule) in enumerate(new.items(), first):
        if rule_id not in old:
            yield RulePatch(RulePatchKind.ADD, rule_id, None, rule, position, reasoning)
        elif old[rule_id] != rule or rule_id not in stayed:
            why = reasoning if rule_id in stayed else "; ".join(filter(None, (reasoning, _MOVED_REASON)))
            yield RulePatch(RulePatchKind.UPDATE, rule_id, old[rule_id], rule, position, why)


def diff_renumbered(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> Iterator[RulePatch]:
    """Yield the changes of rules as `diff_rules` does, without rules that only have another id.

    Rules of a written policy are numbered by their sentences: one sentence more in front changes all ids.
    """
    blocks = SequenceMatcher(
        None, [*map(_content, before)], [*map(_content, after)], autojunk=False
    ).get_matching_blocks()
    old, new = list(enumerate(before)), list(enumerate(after))
    for block in reversed(blocks):
        del old[block.a : block.a + block.size]
        del new[block.b : block.b + block.size]
    for patch in diff_rules([rule for _, rule in old], [rule for _, rule in new]):
        places = old if patch.after is None else new
        rule = patch.before if patch.after is None else patch.after
        yield replace(patch, position=next(place for place, one in places if one is rule))


def _content(rule: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in rule.items() if key != "id"}, sort_keys=True)


def _unmoved_ids(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Return the ids in a longest common order of both lists."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {rule_id for block in blocks for rule_id in before[block.a : block.a + block.size]}
