"""AgentDojo: attacks that a policy in prose stops, and benign calls that it stops needlessly.

`make bench-agentdojo` installs agentdojo into a folder of its own. Each suite has one page, and each user
task that changes something has its sentences (tests/data/agentdojo). An attack on a task is stopped if the
policy of the task denies or escalates a call of the attack. No model is called. The baseline allows the
tools that a task needs, by their names.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peripety.author.policy_author.rules import build_rules
from peripety.engine import ToolRequest
from support.policy_sentences import decide_calls

_POLICIES = Path(__file__).resolve().parents[1] / "data" / "agentdojo" / "policies.txt"
_LINE = re.compile(
    r"role (?P<tool>\w+)\.(?P<argument>\w+) (?P<role>\w+)|> (?P<page>.+)"
    r"|(?P<task>user_task_\d+): (?P<said>.+)"
)


@dataclass(slots=True)
class _Suite:
    """Policies of a suite: its page, a sentence for each task, and the roles of arguments."""

    page: str = ""
    tasks: dict[str, str] = field(default_factory=dict)
    roles: dict[str, list[dict[str, str]]] = field(default_factory=dict)


def main() -> int:
    """Print the figures of each suite and of all."""
    suites = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    policies = _load_policies()
    total: Counter[str] = Counter()
    for name, suite in suites.items():
        counts = _measure(name, suite, policies[name])
        _print_counts(name, counts)
        total += counts
    _print_counts("all", total)
    return 0


def _load_policies() -> dict[str, _Suite]:
    found: dict[str, _Suite] = {}
    for block in re.split(r"(?m)^== ", _POLICIES.read_text(encoding="utf-8"))[1:]:
        name, *lines = block.strip().splitlines()
        suite = found[name] = _Suite()
        for line in lines:
            match = _LINE.fullmatch(line)
            assert match, line
            if match["page"]:
                suite.page += f"{match['page']}\n\n"
            elif match["task"]:
                suite.tasks[match["task"]] = match["said"]
            else:
                entry = {"path": f"/{match['argument']}", "role": match["role"]}
                suite.roles.setdefault(match["tool"], []).append(entry)
    return found


def _measure(name: str, suite: dict[str, Any], policy: _Suite) -> Counter[str]:
    tools = [
        {
            "server_name": name,
            "tool_name": one["name"],
            "input_schema": _plain_schema(one["schema"]),
            "argument_roles": policy.roles.get(one["name"], []),
        }
        for one in suite["tools"]
    ]
    attacks = {task: calls for task, calls in suite["injection_tasks"].items() if calls}
    counts: Counter[str] = Counter()
    for task, calls in suite["user_tasks"].items():
        text = f"{policy.page}{policy.tasks.get(task, '')}"
        derived = build_rules(text, tools)
        for one in derived.unfollowed:
            sys.stdout.write(f"  {name} {task}: not followed: {one.sentence}\n")
        every = [*calls, *(call for attack in attacks.values() for call in attack)]
        requests = [ToolRequest(name, one["tool"], one["arguments"], ()) for one in every]
        decided = decide_calls(derived, tools, requests, is_open=False)
        counts["tasks"] += 1
        for call, decision in zip(calls, decided, strict=False):
            counts["benign"] += 1
            counts[f"benign {decision}"] += 1
            if decision == "deny":
                sys.stdout.write(f"  {name} {task}: benign call denied: {call['tool']}\n")
        rest = iter(decided[len(calls) :])
        names = {one["tool"] for one in calls}
        for attack in attacks.values():
            counts["attacks"] += 1
            counts["stopped"] += any(one != "allow" for one in [next(rest) for _ in attack])
            counts["stopped by names"] += any(one["tool"] not in names for one in attack)
    return counts


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the types and values of its properties alone, without unions and references."""
    properties: dict[str, Any] = {}
    for name, one in schema.get("properties", {}).items():
        kind = next(kind for kind in one.get("anyOf", [one]) if kind.get("type") != "null")
        kind = schema.get("$defs", {}).get(kind.get("$ref", "").rpartition("/")[2], kind)
        properties[name] = {key: kind[key] for key in ("type", "enum") if key in kind}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _print_counts(name: str, counts: Counter[str]) -> None:
    def share(part: str, whole: str) -> str:
        return f"{counts[part]} of {counts[whole]} ({counts[part] / max(counts[whole], 1):.1%})"

    sys.stdout.write(
        f"{name}: {counts['tasks']} tasks; attacks stopped: {share('stopped', 'attacks')}, by tool names"
        f" {share('stopped by names', 'attacks')}; benign calls denied: {share('benign deny', 'benign')},"
        f" escalated: {share('benign escalate', 'benign')}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
