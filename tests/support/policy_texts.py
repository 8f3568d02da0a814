"""Policies in office English with expected decisions, from tests/data/policy_reader."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER = Path(__file__).resolve().parents[1] / "data" / "policy_reader"
_TOOL = re.compile(r'(?P<server>\w+)\.(?P<tool>\w+)\((?P<arguments>.*)\) "(?P<description>.*)"')
_ARGUMENT = re.compile(r"(?P<name>\w+)(?P<optional>\??):(?P<type>[\w|-]+)(?:@(?P<role>\w+))?")
_CASE = re.compile(r"(?P<decision>allow|deny|escalate|stop) (?P<call>.+)")
_CALL = re.compile(
    r"(?P<server>\w+)\.(?P<tool>\w+) (?P<arguments>\{.*\})"
    r"(?: as (?P<role>\w+))?",
)
_TYPES: dict[str, dict[str, Any]] = {
    "s": {"type": "string"},
    "n": {"type": "number"},
    "i": {"type": "integer"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "items": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call with the expected decision: allow, deny, escalate, stop (deny or escalate), or any."""

    expected: str
    request: ToolRequest


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A policy in prose, its tools as in a policy document, and expected calls."""

    name: str
    text: str
    tools: tuple[dict[str, Any], ...]
    calls: tuple[ExpectedCall, ...]


def load_policy_texts(name: str) -> tuple[PolicyText, ...]:
    """Return the policies of a file of the folder: `development` or `sealed`."""
    written = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(_parse_policy(block) for block in re.split(r"(?m)^== ", written)[1:])


def decide_texts(
    texts: Sequence[PolicyText], build_rules: Any
) -> Iterator[tuple[PolicyText, ExpectedCall, str]]:
    """Yield each call with its policy and the decision of the rules of `build_rules(text, tools)`."""
    for policy in texts:
        rules = build_rules(policy.text, policy.tools).rules
        document = {
            "policy_version": "1.0",
            "id": "a",
            "name": policy.name,
            "tools": list(policy.tools),
            "rules": [*rules],
        }
        compiled = engine.compile_policy(json.dumps(document))
        for call in policy.calls:
            yield policy, call, compiled.decide(call.request).decision.value


def score_decisions(decided: Sequence[tuple[PolicyText, ExpectedCall, str]]) -> Counter[str]:
    """Return the numbers of calls, right decisions, unsafe permissions and needless stops."""
    counts: Counter[str] = Counter(calls=0, right=0, unsafe=0, needless=0)
    for _, call, actual in decided:
        counts["calls"] += 1
        counts["right"] += actual == call.expected or (call.expected == "stop" and actual != "allow")
        counts["unsafe"] += actual == "allow" and call.expected != "allow"
        counts["needless"] += actual != "allow" and call.expected == "allow"
        counts["expected_allow"] += call.expected == "allow"
    return counts


def _parse_policy(block: str) -> PolicyText:
    name, *lines = block.strip().splitlines()
    text = "\n".join(line[2:] for line in lines if line.startswith("> "))
    tools = tuple(parse_tool(line) for line in lines if _TOOL.fullmatch(line))
    calls = tuple(
        parse_call(match["decision"], match["call"]) for line in lines if (match := _CASE.fullmatch(line))
    )
    assert len(tools) + len(calls) + text.count("\n") + 1 == len([line for line in lines if line.strip()]), (
        name
    )
    return PolicyText(name, text, tools, calls)


def parse_tool(line: str) -> dict[str, Any]:
    """Return the tool of a line, as in a policy document."""
    match = _TOOL.fullmatch(line)
    assert match, line
    properties: dict[str, Any] = {}
    required, roles = [], []
    for argument in _ARGUMENT.finditer(match["arguments"]):
        kind = argument["type"]
        properties[argument["name"]] = (
            _TYPES[kind] if kind in _TYPES else {"type": "string", "enum": kind.split("|")}
        )
        if not argument["optional"]:
            required.append(argument["name"])
        if argument["role"]:
            roles.append({"path": f"/{argument['name']}", "role": argument["role"]})
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {
        "server_name": match["server"],
        "tool_name": match["tool"],
        "description": match["description"],
        "input_schema": schema,
        "argument_roles": roles,
    }


def parse_call(decision: str, call: str) -> ExpectedCall:
    """Return the call of a text `server.tool {arguments} as role`, with its expected decision."""
    match = _CALL.fullmatch(call)
    assert match, call
    roles = (match["role"],) if match["role"] else ()
    request = ToolRequest(match["server"], match["tool"], json.loads(match["arguments"]), roles)
    return ExpectedCall(decision, request)
