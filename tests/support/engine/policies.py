"""Small policies."""

from __future__ import annotations

import json
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.policies.types import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from peripety.engine.policies.policy import Policy


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


Json = dict[str, Any]

_PATHS = ("/a/../ab", "/a/b", "b")
_LABELS = ("one", 5)
_MODES = ("quick", "7", "")
_AMOUNTS = range(3)
_ROLES = ("first", "second")
_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"enum": [*_PATHS]},
        "labels": {"type": "array", "items": {"enum": [*_LABELS]}, "maxItems": 2, "uniqueItems": True},
        "amount": {"type": "integer", "minimum": 0, "maximum": 2},
        "options": {
            "type": "object",
            "properties": {"mode": {"enum": [*_MODES, None]}},
            "additionalProperties": False,
        },
        "force": {"type": "boolean"},
    },
    "required": ["amount", "options"],
    "additionalProperties": False,
}
_TOOL = tool("a", "alpha", input_schema=_SCHEMA, argument_roles={"/path": "place", "/labels": "label"})
_NOTHING: Any = object()


def all_requests() -> list[ToolRequest]:
    """Every call that the tool accepts, except for the order of labels."""
    labels = [_NOTHING, [], *([one] for one in _LABELS), *map(list, combinations(_LABELS, 2))]
    modes = [{}, *({"mode": mode} for mode in (*_MODES, None))]
    roles = [(), *((role,) for role in _ROLES), _ROLES]
    return [
        ToolRequest("alpha", "a", {key: value for key, value in arguments if value is not _NOTHING}, callers)
        for path, label, amount, mode, force, callers in product(
            (_NOTHING, *_PATHS),
            labels,
            _AMOUNTS,
            modes,
            (_NOTHING, False, True),
            roles,
        )
        for arguments in [
            [("path", path), ("labels", label), ("amount", amount), ("options", mode), ("force", force)],
        ]
    ]


def listed_policy(random: Random, *, opaque: bool) -> Policy:
    """A policy of a few rules about the tool.

    Args:
        random: what to draw from.
        opaque: whether some rules look at two arguments at once.
    """
    invariants = [listed_rule(random, f"structural-{n}", opaque=opaque) for n in range(random.randint(0, 2))]
    rules = [listed_rule(random, f"r{number}", opaque=opaque) for number in range(random.randint(2, 8))]
    document = policy_document(tools=[_TOOL], invariants=invariants, rules=rules)
    return engine.compile_policy(document)


def listed_rule(random: Random, rule_id: str, *, opaque: bool) -> Json:
    """A rule about the tool."""
    when: Json = {}
    if random.random() < 0.3:
        when["roles"] = random.sample(_ROLES, random.randint(1, 2))
    if random.random() < 0.5:
        when["arguments"] = [*_matchers(random)]
    if random.random() < 0.7 or not when:
        when["logic"] = _logic(random, 2, opaque=opaque)
    return rule(rule_id, random.choice(("allow", "deny", "escalate")), **when)


def _matchers(random: Random) -> Iterator[Json]:
    for _ in range(random.randint(1, 2)):
        quantifier = random.choice(("all", "any", "none", "not_all"))
        if random.random() < 0.5:
            among = random.sample(("/a", "/a/b", "/a/c", "/", "/ab"), random.randint(1, 2))
            yield {"argument_roles": ["place"], "kind": "path", "among": among, "quantifier": quantifier}
        else:
            among = random.sample(("one", "two", "three"), random.randint(1, 2))
            yield {
                "argument_roles": ["label"],
                "kind": "identifier",
                "among": among,
                "quantifier": quantifier,
            }


def _logic(random: Random, depth: int, *, opaque: bool) -> Any:
    if depth and random.random() < 0.5:
        parts = [_logic(random, depth - 1, opaque=opaque) for _ in range(3)]
        operator = random.choice(("and", "or", "!", "!!", "if"))
        return {operator: parts[:1] if operator.startswith("!") else parts}
    if opaque and random.random() < 0.4:
        labelled = {"==": [{"var": ""}, random.choice(_LABELS)]}
        both = {"+": [{"var": "arguments.options.mode"}, 1]}
        return random.choice(
            (
                {"<": [{"var": "arguments.amount"}, both]},
                {random.choice(("some", "all", "none")): [{"var": "arguments.labels"}, labelled]},
            ),
        )
    mode, amount = {"var": "arguments.options.mode"}, {"var": "arguments.amount"}
    literal = random.choice(("quick", "7", "", 7, 2, 0, None, True))
    return random.choice(
        (
            {
                random.choice(("<", "<=", ">", ">=", "==", "!=", "===", "!==")): [
                    amount,
                    random.randint(-1, 3),
                ],
            },
            {random.choice(("<", "<=")): [random.randint(0, 2), amount, random.randint(1, 3)]},
            {random.choice(("==", "!=", "===", "!==")): [mode, literal]},
            {random.choice(("<", ">=")): [mode, random.choice((2, 7))]},
            {"in": [mode, random.sample(["quick", "plain", 7, None], 2)]},
            {"in": ["ick", mode]},
            {"in": [random.choice(("one", "three", 5)), {"var": "arguments.labels"}]},
            {"missing": random.sample(["arguments.force", "arguments.options.mode", "arguments.path"], 2)},
            {"==": [{"var": ["arguments.force", True]}, True]},
            {"var": random.choice(("arguments.labels", "arguments.force", "arguments.amount"))},
            {"in": [random.choice(_ROLES), {"var": "roles"}]},
            {"===": [{"var": "tool"}, random.choice(("a", "b"))]},
        ),
    )


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


def tool_with_roles(tool_name: str = "a", **changes: Any) -> Json:
    """A tool with two roles of arguments."""
    roles = {"/path": "place", "/paths": "places"}
    parts = {"input_schema": SCHEMA, "argument_roles": roles} | changes
    return tool(tool_name, "alpha", **parts)


def matcher(role: str, kind: str, *among: str, quantifier: str | None = None) -> Json:
    found: Json = {"argument_roles": [role], "kind": kind, "among": [*among]}
    return found if quantifier is None else found | {"quantifier": quantifier}


def matching(*among: str, quantifier: str = "all", role: str = "place", kind: str = "path") -> Json:
    """A matcher of the tool with two roles."""
    return matcher(role, kind, *among, quantifier=quantifier)


def policy_of(
    *rules: Json,
    invariants: Iterable[Json] = (),
    tools: Iterable[Json] = (),
    lists: Mapping[str, Any] | None = None,
) -> Policy:
    """A policy with some rules, about the tool with two roles unless others are given."""
    return engine.compile_policy(
        policy_document(
            tools=[*tools] or [tool_with_roles()],
            invariants=[*invariants],
            rules=[*rules],
            lists=lists or {},
        ),
    )


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


tiny_policy = partial(policy_of, tools=_TOOLS)
"""A policy about `alpha/read` with path, paths, size and mode, and `beta/send` with to, url, label."""


def allow(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "allow", **when)


def deny(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "deny", **when)


def escalate(rule_id: str, **when: Any) -> Json:
    return rule(rule_id, "escalate", **when)


def request(tool: str = "read", *, roles: Sequence[str] = (), **arguments: Any) -> ToolRequest:
    server = {"read": "alpha", "send": "beta"}.get(tool, "alpha")
    return ToolRequest(server, tool, arguments, tuple(roles))
