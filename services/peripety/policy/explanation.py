"""Explanation of a decision: the considered rules, and the member of each that did not hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety.policy.analysis.condition_logic import PolicyLists, ToolTerms
from peripety.policy.verification.back_translation import RuleDescriber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.engine import Policy, ToolRequest


_MEMBERS = ("servers", "tools", "roles", "argument_roles", "read_only", "destructive")
"""Members of a condition without parts, in the order of evaluation; matchers and logic follow."""


_REQUEST_MEMBERS = ("roles", "arguments", "logic")
"""Members of a condition that depend on the call, not only on its tool."""
_MAX_NEEDED = 3


class ConditionOutcome(Enum):
    """Outcome of the condition of a rule for one call."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does_not_hold"
    UNEVALUATED = "unevaluated"
    """It cannot be evaluated: a rule that denies or escalates applies, a rule that allows does not."""


@dataclass(frozen=True, slots=True)
class ConsideredRule:
    """A rule that was considered for a call.

    Attributes:
        rule_id: the rule.
        outcome: the outcome of its condition.
        path: JSON Pointer into the rule of the first member that did not hold or could not be evaluated;
            empty if the condition holds.
    """

    rule_id: str
    outcome: ConditionOutcome
    path: str


def explain_decision(policy: Policy, request: ToolRequest) -> tuple[ConsideredRule, ...]:
    """Return the rules up to the deciding one, in order; none for a tool that the policy does not know.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`.
    """
    prepared = policy.prepare([request])
    deciding = policy.find_deciding_rules(prepared)[0]
    if deciding < -1:
        return ()
    considered = policy.rules if deciding < 0 else policy.rules[: deciding + 1]
    whole = policy.match_rules(prepared)
    # One condition for each member of the rules that do not hold, evaluated together.
    parts = [
        (at, path, {**rule, "when": when})
        for at, rule in enumerate(considered)
        if not whole[at].holds
        for path, when in _split_condition(rule["when"])
    ]
    matches = policy.match_rules(prepared, [rule for _, _, rule in parts]) if parts else ()
    failing: dict[int, str] = {}
    for (at, path, _), match in zip(parts, matches, strict=True):
        if not match.holds:
            failing.setdefault(at, path)
    return tuple(
        ConsideredRule(
            rule["id"],
            ConditionOutcome.HOLDS
            if whole[at].holds
            else ConditionOutcome.UNEVALUATED
            if whole[at].unevaluated
            else ConditionOutcome.DOES_NOT_HOLD,
            failing.get(at, ""),
        )
        for at, rule in enumerate(considered)
    )


def list_closed_tools(policy: Policy) -> tuple[tuple[str, str], ...]:
    """Return the server and name of each tool of which no rule can allow or escalate a call."""
    lists = PolicyLists(policy.spec.get("lists", {}))
    opening = [rule["when"] for rule in policy.rules if rule["then"] != "deny"]
    terms = [ToolTerms(tool, lists) for tool in policy.spec["tools"]]
    return tuple((one.server, one.tool) for one in terms if not any(map(one.can_apply, opening)))


def describe_missing_rule(policy: Policy, request: ToolRequest) -> str:
    """Describe why no rule takes hold for a call: what each rule that may open its tool needs.

    Returns:
        A sentence, without the full stop at its end. It has the conditions and not the values of the call.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`.
    """
    tool = f"{request.server_name}/{request.tool_name}"
    considered = explain_decision(policy, request)
    if not considered:
        return f"the policy does not know the tool {tool}"
    describer = RuleDescriber(policy)
    needed = []
    for rule, one in zip(policy.rules, considered, strict=True):
        member = one.path.split("/")[2:]
        if rule["then"] == "deny" or not member or member[0] not in _REQUEST_MEMBERS:
            continue
        missed = rule["when"][member[0]]
        part = [missed[int(member[1])]] if member[0] == "arguments" else missed
        [condition] = describer.describe_conditions({member[0]: part})
        sentence = f' ("{rule["principle"]}")' if rule.get("principle") else ""
        absolute = (
            ", as an absolute path" if one.outcome is ConditionOutcome.UNEVALUATED and _is_path(part) else ""
        )
        needed.append(f"{condition}{absolute}{sentence}")
    if not needed:
        return f"no rule allows calls of {tool}"
    shown = needed[:_MAX_NEEDED]
    more = f"; {len(needed) - len(shown)} more rules do not hold either" if len(needed) > len(shown) else ""
    return f"no rule allows this call of {tool}; it needs that {', or that '.join(shown)}{more}"


def _is_path(part: Any) -> bool:
    return isinstance(part, list) and isinstance(part[0], dict) and part[0]["kind"] == "path"


def _split_condition(when: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each member of a condition in the order of evaluation: its path, and a condition of it alone."""
    for name in _MEMBERS:
        if name in when:
            yield f"/when/{name}", {name: when[name]}
    for index, matcher in enumerate(when.get("arguments", ())):
        yield f"/when/arguments/{index}", {"arguments": [matcher]}
    if "logic" in when:
        yield "/when/logic", {"logic": when["logic"]}
