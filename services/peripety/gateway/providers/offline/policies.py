"""Offline answers about written policies, from the policy's text alone.

The last line of the instructions is a JSON object:
    {"constitution": TEXT, "tools": [{server_name, tool_name, ...}, ...], "lists": {NAME: {kind, values}}}
The last message to a judge is one, too:
    {"failed": [{"description": TEXT}, ...]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.policies import judgement, rules_from, scenarios_from
from peripety.authoring.reading.languages import MARK
from peripety.gateway.providers.offline.asked import object_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.gateway.model import GenerateRequest

__all__ = ["ANSWERS"]

_ABOUT = "a policy"
_NAME = {"type": "string"}
_ROLES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"path": _NAME, "role": _NAME},
        "required": ["path", "role"],
    },
}
_TOOL = {
    "type": "object",
    "properties": {
        "server_name": _NAME,
        "tool_name": _NAME,
        "input_schema": {"type": "object"},
        "argument_roles": _ROLES,
    },
    "required": ["server_name", "tool_name"],
}
_LIST = {
    "type": "object",
    "properties": {"kind": _NAME, "values": {"type": "array", "items": _NAME}},
    "required": ["kind", "values"],
}
_MATERIAL = {
    "type": "object",
    "properties": {
        "constitution": _NAME,
        "tools": {"type": "array", "items": _TOOL},
        "lists": {"type": "object", "additionalProperties": _LIST},
    },
    "required": ["constitution", "tools"],
}
_FAILED = {
    "type": "object",
    "properties": {
        "failed": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"description": _NAME},
                "required": ["description"],
            },
        }
    },
    "required": ["failed"],
}


def _rules(request: GenerateRequest) -> dict[str, Any]:
    material = _material(request)
    lists = {name: one["kind"] for name, one in material.get("lists", {}).items()}
    rules = rules_from(material["constitution"], material["tools"], lists).rules
    # The author does not depend on the server of the tools.
    return {"rules": [{**rule, "when": _without(rule["when"], "servers")} for rule in rules]}


def _scenarios(request: GenerateRequest) -> dict[str, Any]:
    if len(request.messages) > 1:
        # The first answer already contains everything that the text yields.
        return {"scenarios": []}
    material = _material(request)
    written = scenarios_from(material["constitution"], material["tools"], material.get("lists"))
    return {"scenarios": [_without(scenario, "rule_id") for scenario in written]}


def _judgement(request: GenerateRequest) -> dict[str, Any]:
    value = object_in(request.messages[-1].text, _FAILED, "the last message", _ABOUT)
    return judgement(failed["description"] for failed in value["failed"])


def _patches(_request: GenerateRequest) -> dict[str, Any]:
    return {"reasoning": f"The rules already follow the words of the policy {MARK}.", "operations": []}


ANSWERS: Mapping[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "policy_rules": _rules,
    "policy_scenarios": _scenarios,
    "policy_judgement": _judgement,
    "policy_patches": _patches,
}
"""Answer functions by schema name; each raises InvalidArgumentError if its input is missing."""


def _material(request: GenerateRequest) -> dict[str, Any]:
    *_, last = (request.system or "").splitlines() or [""]
    return object_in(last, _MATERIAL, "the last line of the instructions", _ABOUT)


def _without(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}
