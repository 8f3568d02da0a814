"""Policies for tests: small documents that are valid until a test changes them."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["policy_document", "policy_spec", "rule", "tool"]


def tool(tool_name: str = "t", server_name: str = "s", **parts: Any) -> dict[str, Any]:
    """A tool; its argument roles may be given as a mapping of paths to roles."""
    roles = parts.pop("argument_roles", None)
    if isinstance(roles, dict):
        roles = [{"path": path, "role": role} for path, role in roles.items()]
    return {
        "server_name": server_name,
        "tool_name": tool_name,
        **({} if roles is None else {"argument_roles": roles}),
        **parts,
    }


def rule(rule_id: str = "r", then: str = "allow", **when: Any) -> dict[str, Any]:
    """A rule; without a condition it always takes hold."""
    return {"id": rule_id, "when": when or {"logic": {}}, "then": then, "reason": f"so says {rule_id}"}


def policy_spec(**parts: Any) -> dict[str, Any]:
    """A policy about one tool, with an argument `a` of the role `target`, and no rules."""
    return {
        "policy_version": "1.0",
        "id": "p",
        "name": "P",
        "tools": [tool(argument_roles={"/a": "target"})],
        "rules": [],
        **parts,
    }


def policy_document(**parts: Any) -> bytes:
    """The same as JSON."""
    return json.dumps(policy_spec(**parts)).encode()
