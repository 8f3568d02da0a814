"""Response schemas of the authoring prompts, and parsers of the responses."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from peripety.policies.model import Expectation, ScenarioSource, TestScenario, ToolRequest
from peripety.sim.schemas import POLICY_SPEC, schema_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.policies.model import ToolAnnotation

__all__ = [
    "JUDGEMENT",
    "PATCHES",
    "RULES",
    "SCENARIOS",
    "judgement_schema",
    "patches_schema",
    "rules_schema",
    "scenarios_read",
    "scenarios_schema",
]

RULES = "policy_rules"
SCENARIOS = "policy_scenarios"
JUDGEMENT = "policy_judgement"
PATCHES = "policy_patches"

_EXPECTATIONS = [expectation.value for expectation in Expectation]
_SENTENCE = {"type": "string", "minLength": 1, "maxLength": 500}
_TEXT = {"type": "string", "maxLength": 4_000}


def rules_schema(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the schema of rules for tools of one server, limited to existing tools and argument roles."""
    return _of({"rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}}}) | _rule_parts(tools)


def patches_schema(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the schema of a patch of the rules for some tools."""
    operation = _of(
        {
            "op": {"enum": ["update", "add", "delete"]},
            "rule_id": {"type": "string"},
            "rule": {"$ref": "#/$defs/Rule"},
            "after": {"type": "string"},
        },
        optional=("rule", "after"),
    )
    operations = {"type": "array", "items": operation}
    return _of({"reasoning": _TEXT, "operations": operations}) | _rule_parts(tools)


def scenarios_schema(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the schema of test scenarios, limited to the servers and names of the given tools."""
    return _of({"scenarios": {"type": "array", "items": _scenario(tools)}})


def judgement_schema(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the schema of a judgement. Fault is attributed in fields, never in prose."""
    attribution = _of(
        {
            "description": {"type": "string"},
            "blame": {"enum": ["rule", "scenario", "both"]},
            "corrected_decision": {"enum": _EXPECTATIONS},
            "reasoning": _TEXT,
        },
        optional=("corrected_decision",),
    )
    return _of(
        {
            "satisfied": {"type": "boolean"},
            "attributions": {"type": "array", "items": attribution},
            "probes": {"type": "array", "items": _scenario(tools)},
        }
    )


def scenarios_read(
    scenarios: Iterable[Mapping[str, Any]], source: ScenarioSource
) -> tuple[TestScenario, ...]:
    """Parse the scenarios of a response that is valid against its schema."""
    return tuple(
        TestScenario(
            scenario["description"],
            ToolRequest(
                scenario["request"]["server_name"],
                scenario["request"]["tool_name"],
                scenario["request"]["arguments"],
                tuple(scenario["request"].get("roles", ())),
            ),
            Expectation(scenario["expected_decision"]),
            scenario["reasoning"],
            source,
        )
        for scenario in scenarios
    )


def _scenario(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    request = _of(
        {
            "server_name": {"enum": _distinct(tool.server_name for tool in tools)},
            "tool_name": {"enum": _distinct(tool.tool_name for tool in tools)},
            "arguments": {"type": "object"},
            "roles": {"type": "array", "items": {"type": "string"}},
        },
        optional=("roles",),
    )
    return _of(
        {
            "description": _SENTENCE,
            "request": request,
            "expected_decision": {"enum": _EXPECTATIONS},
            "reasoning": _TEXT,
        }
    )


def _rule_parts(tools: Sequence[ToolAnnotation]) -> dict[str, Any]:
    """Return the definitions of rules from the policy schema, without the fixed server name."""
    known = copy.deepcopy(schema_document(POLICY_SPEC)["$defs"])
    parts = {name: known[name] for name in ("Rule", "Condition", "Matcher", "JsonValue")}
    condition, matcher = parts["Condition"]["properties"], parts["Matcher"]["properties"]
    del condition["servers"]
    condition["tools"]["items"] = {"enum": _distinct(tool.tool_name for tool in tools)}
    roles = _distinct(role for tool in tools for _, role in tool.argument_roles)
    if roles:
        condition["argument_roles"]["items"] = matcher["argument_roles"]["items"] = {"enum": roles}
    else:
        del condition["argument_roles"], condition["arguments"], parts["Matcher"]
    return {"$defs": parts}


def _of(properties: dict[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _distinct(names: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(names)]
