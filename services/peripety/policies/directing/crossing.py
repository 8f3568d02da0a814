"""Requests with arguments of others: one that is in several odd places at once takes the place of several."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from peripety.policies.arguments import violations
from peripety.sim import ToolRequest, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.sim import Policy

__all__ = ["crossed"]

_CHILDREN = 10


def crossed(policy: Policy, requests: Iterable[ToolRequest]) -> Iterator[ToolRequest]:
    """The requests that their tools take, and some made of them, each once.

    What is made depends on the requests alone.

    Args:
        policy: the policy whose tools they are for.
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
    """Requests each of whose arguments is that of some request for the same tool."""
    of_tools: dict[tuple[str, str], list[ToolRequest]] = {}
    for request in requests:
        of_tools.setdefault((request.server_name, request.tool_name), []).append(request)
    random = Random(0)  # noqa: S311 - nothing is secret about it
    for request in requests:
        others = of_tools[request.server_name, request.tool_name]
        for _ in range(_CHILDREN if len(others) > 1 else 0):
            yield _child(random, request, others)


def _child(random: Random, parent: ToolRequest, others: Sequence[ToolRequest]) -> ToolRequest:
    names = sorted({*parent.arguments, *random.choice(others).arguments})
    sources = ((name, random.choice((parent, random.choice(others))).arguments) for name in names)
    return ToolRequest(
        parent.server_name,
        parent.tool_name,
        {name: arguments[name] for name, arguments in sources if name in arguments},
        random.choice((parent, random.choice(others))).roles,
    )
