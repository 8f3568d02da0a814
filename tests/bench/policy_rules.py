"""Rules that every engine of the decision benchmark can express, and requests for them.

Rules that deny come first, and callers without a rule that allows are denied. The order of rules, which only
one of the engines has, is therefore irrelevant. Paths and hosts are already normalized, which the others
leave to their callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.engine import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterator


SERVERS = ("alpha", "beta", "gamma", "delta")
TOOLS = ("read", "write", "list", "send", "move")
CALLERS = ("first", "second", "third", "guest")
_PATHS = ("/a", "/a/b", "/a/b/c", "/d", "/d/e", "/f")
_HOSTS = ("a.example", "b.example", "c.test")
_AMOUNTS = (5, 10, 50, 100)


@dataclass(frozen=True)
class Rule:
    """A rule that allows or denies calls of one tool. A condition of None matches everything.

    Attributes:
        denies: True if it denies.
        server: the server of the tool.
        tool: its name.
        caller: the role that the caller needs.
        below: the path that the path lies below, or is.
        host: the host, or a parent domain of it.
        most: the largest amount.
    """

    denies: bool
    server: str
    tool: str
    caller: str | None = None
    below: str | None = None
    host: str | None = None
    most: int | None = None


def _rules() -> Iterator[Rule]:
    random = Random(58)
    for number in range(58):
        denies = number < 16
        server, tool = SERVERS[number % 4], TOOLS[number % 5]
        kind = number % 4
        yield Rule(
            denies,
            server,
            tool,
            caller="guest" if denies and kind == 0 else None if denies else random.choice(CALLERS[:3]),
            below=random.choice(_PATHS) if kind in {1, 3} else None,
            host=random.choice(_HOSTS) if kind == 2 else None,
            most=None if denies or kind != 3 else random.choice(_AMOUNTS),
        )


RULES = (*_rules(),)


def policy_spec() -> dict[str, Any]:
    """The rules as a policy of ours."""
    roles = [{"path": "/path", "role": "target"}, {"path": "/host", "role": "origin"}]
    return {
        "policy_version": "1.0",
        "id": "bench",
        "name": "Bench",
        "tools": [
            {"server_name": server, "tool_name": tool, "argument_roles": roles}
            for server in SERVERS
            for tool in TOOLS
        ],
        "rules": [_rule(number, rule) for number, rule in enumerate(RULES)],
    }


def _rule(number: int, rule: Rule) -> dict[str, Any]:
    when: dict[str, Any] = {"servers": [rule.server], "tools": [rule.tool]}
    if rule.caller:
        when["roles"] = [rule.caller]
    matchers = []
    if rule.below:
        matchers.append({"argument_roles": ["target"], "kind": "path", "among": [rule.below]})
    if rule.host:
        among = [rule.host, f"*.{rule.host}"]
        matchers.append({"argument_roles": ["origin"], "kind": "domain", "among": among})
    if matchers:
        when["arguments"] = matchers
    if rule.most is not None:
        when["logic"] = {"<=": [{"var": "arguments.amount"}, rule.most]}
    then = "deny" if rule.denies else "allow"
    return {"id": f"r{number}", "when": when, "then": then, "reason": f"r{number} says so"}


def requests(count: int) -> list[ToolRequest]:
    """Calls of these tools, with values at and around what the rules are about."""
    random = Random(count)
    return [
        ToolRequest(
            random.choice(SERVERS),
            random.choice(TOOLS),
            {
                "path": random.choice(_PATHS) + random.choice(("", "/g", "/g/h", "g")),
                "host": random.choice(("", "m.", "m.n.", "m")) + random.choice(_HOSTS),
                "amount": random.choice(_AMOUNTS) + random.choice((-1, 0, 1)),
            },
            (random.choice(CALLERS),),
        )
        for _ in range(count)
    ]
