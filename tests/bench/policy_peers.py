"""Engines of policies to be measured beside ours, each with the rules in its own language.

Each is given requests as it wants them, made beforehand, and its policies parsed beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casbin
import cedarpy
from casbin.model import FastModel

from bench.policy_rules import CALLERS, RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.engine import ToolRequest

    Decide = Callable[[], list[bool]]


def cedar_side(requests: Sequence[ToolRequest]) -> Decide:
    """Cedar, in batches: its policies and entities are parsed once, which is its fastest way."""
    policies = cedarpy.PolicySet.from_str("\n".join(map(_cedar, RULES)))
    entities = cedarpy.Entities.from_json_str(
        "["
        + ",".join(
            f'{{"uid":{{"type":"User","id":"{role}"}},"attrs":{{}},'
            f'"parents":[{{"type":"Role","id":"{role}"}}]}}'
            for role in CALLERS
        )
        + "]",
    )
    asked = [
        {
            "principal": {"type": "User", "id": request.roles[0]},
            "action": {"type": "Action", "id": f"{request.server_name}/{request.tool_name}"},
            "resource": {"type": "Server", "id": request.server_name},
            "context": dict(request.arguments),
        }
        for request in requests
    ]
    return lambda: [result.allowed for result in cedarpy.is_authorized_batch(asked, policies, entities)]


def _cedar(rule: Rule) -> str:
    principal = f'principal in Role::"{rule.caller}"' if rule.caller else "principal"
    conditions = []
    if rule.below:
        conditions.append(f'(context.path == "{rule.below}" || context.path like "{rule.below}/*")')
    if rule.host:
        conditions.append(f'(context.host == "{rule.host}" || context.host like "*.{rule.host}")')
    if rule.most is not None:
        conditions.append(f"context.amount <= {rule.most}")
    when = f" when {{ {' && '.join(conditions)} }}" if conditions else ""
    effect = "forbid" if rule.denies else "permit"
    return f'{effect}({principal}, action == Action::"{rule.server}/{rule.tool}", resource){when};'


_MODEL = """
[request_definition]
r = sub, server, tool, path, host, amount
[policy_definition]
p = sub, server, tool, path, host, most, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.server == p.server && r.tool == p.tool && (p.sub == "*" || r.sub == p.sub) \
&& below(r.path, p.path) && under(r.host, p.host) && within(r.amount, p.most)
"""
_SERVER, _TOOL = 1, 2


def casbin_side(requests: Sequence[ToolRequest]) -> Decide:
    """Casbin, which finds rules by server and tool: its fastest way."""
    keys = (_SERVER, _TOOL)
    model = FastModel(keys)
    model.load_model_from_text(_MODEL)
    enforcer = casbin.FastEnforcer(model, cache_key_order=keys)
    enforcer.add_function("below", _is_below)
    enforcer.add_function("under", _is_under)
    enforcer.add_function("within", _is_within)
    enforcer.add_policies([*map(_casbin, RULES)])
    asked = [
        (
            request.roles[0],
            request.server_name,
            request.tool_name,
            request.arguments["path"],
            request.arguments["host"],
            request.arguments["amount"],
        )
        for request in requests
    ]
    return lambda: [enforcer.enforce(*one) for one in asked]


def _casbin(rule: Rule) -> list[str]:
    most = "*" if rule.most is None else str(rule.most)
    effect = "deny" if rule.denies else "allow"
    return [
        rule.caller or "*",
        rule.server,
        rule.tool,
        rule.below or "*",
        rule.host or "*",
        most,
        effect,
    ]


def _is_below(path: str, above: str) -> bool:
    return above in {"*", path} or path.startswith(f"{above}/")


def _is_under(host: str, end: str) -> bool:
    return end in {"*", host} or host.endswith(f".{end}")


def _is_within(amount: Any, most: str) -> bool:
    return most == "*" or amount <= float(most)
