"""Small policies by hand: one tool, unless more are given, and rules in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import engine
from support import policy_documents
from support.policy_documents import policy_document

if TYPE_CHECKING:
    from peripety.engine.policies.policy import Policy


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


def tool(tool_name: str = "a", **changes: Any) -> Json:
    """A tool with two roles of arguments."""
    roles = {"/path": "place", "/paths": "places"}
    parts = {"input_schema": SCHEMA, "argument_roles": roles} | changes
    return policy_documents.tool(tool_name, "alpha", **parts)


def matching(*among: str, quantifier: str = "all", role: str = "place", kind: str = "path") -> Json:
    """A matcher."""
    return {"argument_roles": [role], "kind": kind, "among": [*among], "quantifier": quantifier}


def policy_of(
    *rules: Json,
    invariants: tuple[Json, ...] = (),
    tools: tuple[Json, ...] = (),
    lists: Json | None = None,
) -> Policy:
    """A policy with some rules."""
    return engine.compile_policy(
        policy_document(
            tools=[*tools] or [tool()],
            invariants=[*invariants],
            rules=[*rules],
            lists=lists or {},
        ),
    )
