"""Small policies by hand: one tool, unless more are given, and rules in few words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.sim.policies.types import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sim.policies.policy import Policy

__all__ = ["SCHEMA", "matching", "policy_of", "request", "rule", "tool"]

Json = dict[str, Any]

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "paths": {"type": "array", "items": {"type": "string"}},
        "amount": {"type": "integer", "minimum": 0, "maximum": 100},
        "mode": {"enum": ["plain", "quick"]},
        "note": {"type": "string"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def tool(**changes: Any) -> Json:
    """A tool with two roles of arguments."""
    return {
        "server_name": "alpha",
        "tool_name": "a",
        "input_schema": SCHEMA,
        "argument_roles": [{"path": "/path", "role": "place"}, {"path": "/paths", "role": "places"}],
    } | changes


def matching(*among: str, quantifier: str = "all", role: str = "place", kind: str = "path") -> Json:
    """A matcher."""
    return {"argument_roles": [role], "kind": kind, "among": [*among], "quantifier": quantifier}


def rule(rule_id: str, then: str, **when: Any) -> Json:
    """A rule; without members it is about every call of the server."""
    return {"id": rule_id, "when": when or {"servers": ["alpha"]}, "then": then, "reason": f"{rule_id}."}


def policy_of(
    *rules: Json, invariants: tuple[Json, ...] = (), tools: tuple[Json, ...] = (), lists: Json | None = None
) -> Policy:
    """A policy with some rules."""
    document = {
        "policy_version": "1.0",
        "id": "p",
        "name": "p",
        "tools": [*tools] or [tool()],
        "invariants": [*invariants],
        "rules": [*rules],
        "lists": lists or {},
    }
    return sim.compile_policy(json.dumps(document))


def request(arguments: Mapping[str, Any], *roles: str, tool_name: str = "a") -> ToolRequest:
    """A call of a tool."""
    return ToolRequest("alpha", tool_name, arguments, roles)
