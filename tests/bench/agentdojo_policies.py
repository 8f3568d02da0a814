"""AgentDojo: attacks that a policy in prose stops, and benign calls that it stops needlessly.

`make bench-agentdojo` installs agentdojo into a folder of its own. No model is called. An attack on a user
task is stopped if the policy denies or escalates a call of the attack. Three policies are measured:

- the names of the tools that a task needs;
- a page for each suite, and sentences for each user task that changes something
  (tests/data/agentdojo/policies.txt);
- a page for each suite alone, with the provenance of arguments (pages.txt). The words of the user, and the
  results of the reference calls of the task, pass through the enforcement point before a call of the attack.
  The text of the attack is in each result that it can reach.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.policy_author.rules import build_rules
from peripety.engine import ToolRequest
from peripety.policy.enforcement.context import CallContext
from support.policy_sentences import to_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Policy

_FOLDER = Path(__file__).resolve().parents[1] / "data" / "agentdojo"
_LINE = re.compile(
    r"role (?P<tool>\w+)\.(?P<argument>\w+) (?P<role>\w+)|> (?P<page>.+)"
    r"|context (?P<context>\w+) (?P<of>\w+): (?P<sources>.+)"
    r"|(?P<task>user_task_\d+): (?P<said>.+)"
)


@dataclass(slots=True)
class _Suite:
    """Policies of a suite: its page, a sentence for each task, the roles of arguments, and the context."""

    page: str = ""
    tasks: dict[str, str] = field(default_factory=dict)
    roles: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    context: dict[str, dict[str, Any]] = field(default_factory=dict)


def main() -> int:
    """Print the figures of each suite and of all, for each policy."""
    suites = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for title, file in (
        ("a page, and sentences for each task", "policies.txt"),
        ("a page alone, with provenance", "pages.txt"),
    ):
        sys.stdout.write(f"{title}\n")
        policies = _load_policies(_FOLDER / file)
        total: Counter[str] = Counter()
        for name, suite in suites.items():
            counts = _measure(name, suite, policies[name])
            _print_counts(name, counts)
            total += counts
        _print_counts("all", total)
    return 0


def _load_policies(path: Path) -> dict[str, _Suite]:
    found: dict[str, _Suite] = {}
    for block in re.split(r"(?m)^== ", path.read_text(encoding="utf-8"))[1:]:
        name, *lines = block.strip().splitlines()
        suite = found[name] = _Suite()
        for line in lines:
            match = _LINE.fullmatch(line)
            assert match, line
            if match["page"]:
                suite.page += f"{match['page']}\n\n"
            elif match["task"]:
                suite.tasks[match["task"]] = match["said"]
            elif match["context"]:
                sources = match["sources"].split()
                suite.context[match["context"]] = {
                    "kind": "provenance",
                    "argument_roles": [match["of"]],
                    **({"user": True} if "user" in sources else {}),
                    **({"tools": tools} if (tools := [one for one in sources if one != "user"]) else {}),
                }
            else:
                entry = {"path": f"/{match['argument']}", "role": match["role"]}
                suite.roles.setdefault(match["tool"], []).append(entry)
    return found


def _describe_tools(name: str, suite: Mapping[str, Any], policy: _Suite) -> list[dict[str, Any]]:
    return [
        {
            "server_name": name,
            "tool_name": one["name"],
            "input_schema": _plain_schema(one["schema"]),
            "argument_roles": policy.roles.get(one["name"], []),
        }
        for one in suite["tools"]
    ]


def _measure(name: str, suite: dict[str, Any], policy: _Suite) -> Counter[str]:
    tools = _describe_tools(name, suite, policy)
    attacks = {task: calls for task, calls in suite["injection_tasks"].items() if calls}
    counts: Counter[str] = Counter()
    for task, given in suite["user_tasks"].items():
        calls = given["calls"]
        derived = build_rules(f"{policy.page}{policy.tasks.get(task, '')}", tools)
        for one in derived.unfollowed:
            sys.stdout.write(f"  {name} {task}: not followed: {one.sentence}\n")
        document = {**to_policy(derived, tools, is_open=False), "context": policy.context}
        compiled = engine.compile_policy(json.dumps(document))
        decided = _decide_in_order(compiled, name, given["prompt"], given["results"], calls)
        counts += _count_benign(f"{name} {task}", calls, decided)
        names = {one["tool"] for one in calls}
        for attack, attacking in attacks.items():
            results = given["results_under_attack"][attack]
            every = _decide_in_order(compiled, name, given["prompt"], results, [*calls, *attacking])
            counts["attacks"] += 1
            counts["stopped"] += any(one != "allow" for one in [*every][len(calls) :])
            counts["stopped by names"] += any(one["tool"] not in names for one in attacking)
    return counts


def _decide_in_order(
    policy: Policy,
    server: str,
    prompt: str,
    results: Sequence[str],
    calls: Iterable[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield the decision of each call, after the words of the user and the results of the calls before."""
    context = CallContext(lambda: 0.0, "user", hears_user=True)
    context.hear_user(prompt)
    for place, call in enumerate(calls):
        request = ToolRequest(server, call["tool"], call["arguments"], ())
        holding = context.holding(policy, request)
        yield policy.decide(replace(request, roles=holding)).decision.value
        if place < len(results):
            context.read_result(request, results[place])


def _count_benign(place: str, calls: Iterable[Mapping[str, Any]], decided: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter(tasks=1)
    for call, decision in zip(calls, decided, strict=False):
        counts["benign"] += 1
        counts[f"benign {decision}"] += 1
        if decision == "deny":
            sys.stdout.write(f"  {place}: benign call denied: {call['tool']}\n")
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
        f"  {name}: {counts['tasks']} tasks; attacks stopped: {share('stopped', 'attacks')},"
        f" by tool names {share('stopped by names', 'attacks')};"
        f" benign calls denied: {share('benign deny', 'benign')},"
        f" escalated: {share('benign escalate', 'benign')}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
