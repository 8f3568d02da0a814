"""Policies of a few rules about two tools, for tests that say what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine import compile_policy
from peripety.engine.policies.types import ToolRequest
from support.policy_documents import policy_document, rule, tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine import Policy


Json = dict[str, Any]

_TEXT = {"type": "string"}


def _schema(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False}


_TOOLS = [
    tool(
        "read",
        "alpha",
        input_schema=_schema(
            path=_TEXT,
            paths={"type": "array", "items": _TEXT},
            size={"type": "integer", "minimum": 0, "maximum": 1000},
            mode={"enum": ["a", "b", "c"]},
        ),
        argument_roles={"/path": "source", "/paths": "source"},
        read_only=True,
    ),
    tool(
        "send",
        "beta",
        input_schema=_schema(to=_TEXT, url=_TEXT, label=_TEXT),
        argument_roles={"/to": "recipient", "/url": "origin", "/label": "label"},
        destructive=True,
    ),
]


def tiny_policy(
    *rules: Json,
    invariants: Sequence[Json] = (),
    lists: Mapping[str, Any] | None = None,
) -> Policy:
    """A policy about `alpha/read` with path, paths, size and mode, and `beta/send` with to, url, label."""
    return compile_policy(
        policy_document(tools=_TOOLS, lists=lists or {}, invariants=[*invariants], rules=[*rules]),
    )


def allow(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "allow", **when)


def deny(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "deny", **when)


def escalate(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "escalate", **when)


def matcher(role: str, kind: str, *among: str, quantifier: str | None = None) -> Json:
    found: Json = {"argument_roles": [role], "kind": kind, "among": [*among]}
    return found if quantifier is None else found | {"quantifier": quantifier}


def request(tool: str = "read", *, roles: Sequence[str] = (), **arguments: Any) -> ToolRequest:
    server = {"read": "alpha", "send": "beta"}.get(tool, "alpha")
    return ToolRequest(server, tool, arguments, tuple(roles))
