"""Crossover of requests: combined arguments, so that one scenario can replace several."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from peripety.policies.arguments import violations
from peripety.sim import ToolRequest, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.sim import Policy

__all__ = ["crossed"]

_CHILDREN = 20


def crossed(policy: Policy, requests: Iterable[ToolRequest]) -> Iterator[ToolRequest]:
    """Yield the valid requests and combinations of them, each once.

    The combinations are deterministic.

    Args:
        policy: the policy with the tools of the requests.
        requests: the requests.
    """
    tools = {(tool["server_name"], tool["tool_name"]): tool for tool in policy.spec["tools"]}
    given = [*requests]
    seen: set[bytes] = set()
    for request in (*given, *_children(given)):
        schema = tools[request.server_name, request.tool_name].get("input_schema")
        key = canonical([request.server_name, request.tool_name, request.arguments, [*request.roles]])
        if key not in seen and not violations(schema, request.arguments):
            seen.add(key)
            yield request


def _children(requests: Sequence[ToolRequest]) -> Iterator[ToolRequest]:
    """Yield requests that combine arguments of requests to the same tool."""
    of_tools: dict[tuple[str, str], list[ToolRequest]] = {}
    for request in requests:
        of_tools.setdefault((request.server_name, request.tool_name), []).append(request)
    random = Random(0)  # noqa: S311 - not used for secrets
    for request in requests:
        others = of_tools[request.server_name, request.tool_name]
        for _ in range(_CHILDREN if len(others) > 1 else 0):
            yield _child(random, request, others)


def _child(random: Random, parent: ToolRequest, others: Sequence[ToolRequest]) -> ToolRequest:
    """Return a request with arguments of others; two arrays may be concatenated."""
    other = random.choice(others).arguments
    arguments: dict[str, Any] = {}
    for name in sorted({*parent.arguments, *other}):
        source = random.choice((parent, random.choice(others))).arguments
        if name in source:
            value, more = source[name], other.get(name)
            both = isinstance(value, list) and isinstance(more, list) and random.choice((True, False))
            arguments[name] = value + more if both else value
    roles = random.choice((parent, random.choice(others))).roles
    return ToolRequest(parent.server_name, parent.tool_name, arguments, roles)
