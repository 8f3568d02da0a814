"""Test scenarios for derived rules: for each rule a sample call that it alone decides.

Sample calls are built from the matchers and bounds of a rule. Without a model to judge a failed scenario,
every failure is attributed to the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from peripety import engine
from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.vocabulary import value_kind
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.engine import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def attribute_failures(failed: Iterable[str]) -> dict[str, Any]:
    """Attribute failed scenarios to the rules; the intent behind a scenario is unknown without a model.

    Args:
        failed: the descriptions of the scenarios.
    """
    attributions = [
        {
            "description": description,
            "blame": "rule",
            "reasoning": f"Who wrote the scenario is believed {OFFLINE_MARK}.",
        }
        for description in failed
    ]
    return {"satisfied": not attributions, "attributions": attributions, "probes": []}


_ELSEWHERE: Final = {
    "path": "/elsewhere/example",
    "domain": "elsewhere.example",
    "email": "someone@elsewhere.example",
    "identifier": "something-else",
}
_OTHERS = {"none", "not_all"}
_PLAIN: Final = {
    "string": "example",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def sample_calls(
    rule: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, Any]],
) -> Iterator[ToolRequest]:
    """Yield calls that a rule may match, simplest first.

    Args:
        rule: a rule of this package.
        tools: the tools, as in a policy document.
        lists: the lists, as in a policy document.
    """
    when = rule["when"]
    callers = tuple(when.get("roles", ()))[:1]
    for tool in tools:
        if tool["server_name"] not in when["servers"] or tool["tool_name"] not in when["tools"]:
            continue
        for values in _sample_role_values(when, lists):
            for number in _boundary_numbers(when.get("logic")):
                arguments = _build_arguments(tool, values, number)
                yield ToolRequest(tool["server_name"], tool["tool_name"], arguments, callers)


def _sample_role_values(
    when: Mapping[str, Any],
    lists: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, str]]:
    """Yield values by role, first for the first entry of each matcher, then for the second ones."""
    matchers = when.get("arguments", ())
    for number in range(max((len(_expand_entries(one, lists)) for one in matchers), default=1)):
        values = {}
        for matcher in matchers:
            entries = _expand_entries(matcher, lists)
            if matcher.get("quantifier") in _OTHERS or not entries:
                value = _ELSEWHERE[matcher["kind"]]
            else:
                value = _matching_value(matcher["kind"], entries[min(number, len(entries) - 1)])
            values.update(dict.fromkeys(matcher["argument_roles"], value))
        yield values


def _expand_entries(matcher: Mapping[str, Any], lists: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        value
        for entry in matcher["among"]
        for value in (lists.get(entry[1:], {}).get("values", ()) if entry.startswith("@") else (entry,))
    ]


def _matching_value(kind: str, entry: str) -> str:
    """Return a value that the entry matches."""
    if kind == "path":
        return f"{entry.rstrip('/')}/example"
    if kind == "domain":
        return entry.replace("*", "www", 1)
    if kind == "email" and entry.startswith("*@"):
        return f"someone@{entry[2:].replace('*', 'www', 1)}"
    return entry


def _boundary_numbers(logic: Any) -> Iterator[tuple[str, float] | None]:
    """Yield the numbers at and next to each bound of an expression, with the argument of each."""
    compared = list(_find_comparisons(logic))
    if not compared:
        yield None
    for path, number in compared:
        for candidate in (number, number + 1, number - 1):
            yield path.removeprefix("arguments."), candidate


def _find_comparisons(logic: Any) -> Iterator[tuple[str, float]]:
    for operator, operands in logic.items() if isinstance(logic, Mapping) else ():
        if operator in {"and", "or"}:
            for operand in operands:
                yield from _find_comparisons(operand)
        elif operator in {"<", "<=", ">", ">="}:
            variable, number = operands
            yield variable["var"], number


def _build_arguments(
    tool: Mapping[str, Any],
    values: Mapping[str, str],
    number: tuple[str, float] | None,
) -> dict[str, Any]:
    """Return valid arguments of the tool, with the given values for its roles."""
    schema = tool.get("input_schema") or {}
    properties = schema.get("properties", {})
    arguments = {name: _plain_value(properties.get(name, {})) for name in schema.get("required", ())}
    if number is not None:
        arguments[number[0]] = number[1]
    for argument in tool.get("argument_roles") or ():
        name, *below = argument["path"].split("/")[1:]
        value = values.get(argument["role"])
        if value is None and name in arguments:
            value = _ELSEWHERE[value_kind(argument["role"])]
        if value is not None and not below:
            arguments[name] = [value] if properties.get(name, {}).get("type") == "array" else value
    return arguments


def _plain_value(schema: Mapping[str, Any]) -> Any:
    """Return a value that a simple schema accepts."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array" and schema.get("minItems"):
        return [_plain_value(schema.get("items", {}))] * schema["minItems"]
    if kind in {"integer", "number"}:
        return schema.get("minimum", _PLAIN[kind])
    return _PLAIN.get(kind, "example")


_MAX_DESCRIPTION = 400


def build_scenarios(
    constitution: str,
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, Any]] | None = None,
    other_tools: Sequence[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """Return a scenario for each sentence that decides a call by itself.

    A call that another rule decides first is skipped; the stricter sentence has its own scenario.

    Args:
        constitution: the written policy.
        tools: the tools, as in a policy document.
        lists: the lists, as in a policy document.
        other_tools: as for `build_rules`.
    """
    lists = dict(lists or {})
    kinds = {name: one["kind"] for name, one in lists.items()}
    rules = build_rules(constitution, tools, kinds, other_tools).rules
    if not rules:
        return []
    document = {
        "policy_version": "1.0",
        "id": "offline",
        "name": OFFLINE_MARK,
        "tools": list(tools),
        "lists": lists,
        "rules": list(rules),
    }
    policy = engine.compile_policy(json.dumps(document))
    return list(_iter_scenarios(policy, rules, tools, lists))


def _iter_scenarios(
    policy: engine.Policy,
    rules: Iterable[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    for rule in rules:
        calls = list(sample_calls(rule, tools, lists))
        decided = policy.decide_many(calls)
        reaching = (call for call, one in zip(calls, decided, strict=True) if one.rule_id == rule["id"])
        call = next(reaching, None)
        if call is not None:
            yield {
                "description": f"{rule['id']}: {call.server_name}/{call.tool_name}"[:_MAX_DESCRIPTION]
                + f" {OFFLINE_MARK}",
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
