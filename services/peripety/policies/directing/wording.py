"""Descriptions of generated scenarios, in one sentence each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE
from peripety.policies.verifying.targets import CONDITION_DECISION, RULE
from peripety.sim.schema import segments

if TYPE_CHECKING:
    from peripety.policies.mutating.changes import Mutation
    from peripety.policies.verifying.targets import Aim
    from peripety.sim import Policy

__all__ = ["about_aim", "about_mutation"]

_MOST_SHOWN = 60

_IS_AMONG = "{before} is one of the values that {rule} matches"
_DEPENDS = "{rule} depends on {before}"
_NOT = "{rule} requires {before}, not {after}"
_WRITTEN = "the logic of {rule} uses {before}, not {after}"
_MUTATIONS = {
    "drop_rule": "{rule} changes the decision",
    "swap_rules": "{rule} is evaluated before the next rule",
    "change_decision": "{rule} decides {before}, not {after}",
    "drop_member": "{rule} depends on its {part}",
    "drop_matcher": "{rule} depends on its {part}",
    "drop_server": _IS_AMONG,
    "drop_tool": _IS_AMONG,
    "drop_role": _IS_AMONG,
    "drop_argument_role": _IS_AMONG,
    "drop_entry": _IS_AMONG,
    "drop_list_value": _IS_AMONG,
    "drop_element": _IS_AMONG,
    "drop_operand": _DEPENDS,
    "negate_logic": _DEPENDS,
    "flip_read_only": "{rule} checks read_only",
    "flip_destructive": "{rule} checks destructive",
    "change_quantifier": _NOT,
    "read_as_identifier": "{rule} compares values as {before}, not as plain text",
    "widen_path": "{rule} matches {before}, not all of {after}",
    "widen_host": "{rule} matches {before}, not all of {after}",
    "narrow_path": "{rule} matches all of {before}, not only {after}",
    "narrow_host": "{rule} matches all of {before}, not only {after}",
    "swap_comparison": _WRITTEN,
    "swap_connective": _WRITTEN,
    "shift_number": "{rule} compares with {before}, not with {after}",
}
_POINTS = {
    "on": "at",
    "inside": "just inside",
    "outside": "just outside",
    "below": "just below",
    "above": "just above",
}
_DEFAULT_QUANTIFIER = "all"


def about_mutation(policy: Policy, mutation: Mutation) -> str:
    """Describe a request that a policy and a mutant decide differently."""
    before, after = mutation.before, mutation.after
    if _MUTATIONS[mutation.operator] is _WRITTEN:
        (before,), (after,) = before, after
    return _MUTATIONS[mutation.operator].format(
        rule=policy.rules[min(mutation.rules)]["id"],
        part="/".join(map(str, mutation.place[3:])) or "condition",
        before=_shown(_DEFAULT_QUANTIFIER if before is GONE else before),
        after="nothing" if after is GONE else _shown(after),
    )


def about_aim(policy: Policy, aim: Aim) -> str:
    """Describe a request that reaches a coverage target."""
    index = aim.ways[0].rule
    if index == len(policy.rules):
        return "no rule applies"
    rule = policy.rules[index]["id"]
    if aim.kind == RULE:
        return f"{rule} decides"
    *place, wanted = segments(aim.path)
    if aim.kind == CONDITION_DECISION:
        holds = "holds" if wanted == "true" else "does not hold"
        return f"{rule} is evaluated, and its {'/'.join(place[3:])} {holds}"
    return f"{rule} is evaluated for a value {_POINTS[wanted]} {_shown(_part(policy.spec, place))}"


def _part(document: Any, place: list[str]) -> Any:
    for segment in place:
        document = document[int(segment) if isinstance(document, list) else segment]
    return document


def _shown(part: Any) -> str:
    text = json.dumps(part, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
