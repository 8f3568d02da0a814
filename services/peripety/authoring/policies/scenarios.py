"""Scenarios for rules from a written policy: for each rule a call that it alone decides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.authoring.policies.rules import rules_from
from peripety.authoring.policies.samples import calls_for
from peripety.authoring.reading.languages import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["scenarios_from"]

_LONGEST = 400


def scenarios_from(
    constitution: str,
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return a scenario for each sentence that decides a call by itself.

    A call that another rule decides first is skipped; the stricter sentence has its own scenario.

    Args:
        constitution: the written policy.
        tools: the tools, as in a policy document.
        lists: the lists, as in a policy document.
    """
    lists = dict(lists or {})
    rules = rules_from(constitution, tools, {name: one["kind"] for name, one in lists.items()}).rules
    if not rules:
        return []
    document = {
        "policy_version": "1.0",
        "id": "offline",
        "name": MARK,
        "tools": list(tools),
        "lists": lists,
        "rules": list(rules),
    }
    policy = sim.compile_policy(json.dumps(document))
    return list(_scenarios(policy, rules, tools, lists))


def _scenarios(
    policy: sim.Policy,
    rules: Iterable[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    for rule in rules:
        calls = list(calls_for(rule, tools, lists))
        decided = policy.decide_many(calls)
        reaching = (call for call, one in zip(calls, decided, strict=True) if one.rule_id == rule["id"])
        call = next(reaching, None)
        if call is not None:
            yield {
                "description": f"{rule['id']}: {call.server_name}/{call.tool_name}"[:_LONGEST] + f" {MARK}",
                "request": {
                    "server_name": call.server_name,
                    "tool_name": call.tool_name,
                    "arguments": dict(call.arguments),
                    "roles": list(call.roles),
                },
                "expected_decision": rule["then"],
                "reasoning": rule["reason"],
                "rule_id": rule["id"],
            }
