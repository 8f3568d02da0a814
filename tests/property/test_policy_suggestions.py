"""Suggested sentences of random calls: all observed calls are allowed, and calls with a new value are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.author.policy_author.rules import build_rules
from peripety.engine import Decision, ToolRequest, compile_policy
from peripety.policy.enforcement.decision_log import call_hash
from peripety.policy.enforcement.suggestion import suggest_sentences
from support.engine.policies import policy_document, tool
from support.examples import example_count

TOOLS = [
    tool(
        "copy_item",
        "alpha",
        argument_roles={"/source": "read_path", "/destination": "write_path"},
        input_schema={
            "type": "object",
            "properties": {
                "source": {"type": "string"},
                "destination": {"type": "string"},
                "count": {"type": "integer"},
                "force": {"type": "boolean"},
            },
            "required": ["source", "destination"],
        },
    )
]
EMPTY = compile_policy(policy_document(tools=TOOLS))
PATHS = ("/a", "/b", "/c/d", "/c", "/e")
FORCE = (None, False, True)
Call = tuple[str, str, int | None, bool | None]
calls = st.tuples(
    st.sampled_from(PATHS),
    st.sampled_from(PATHS),
    st.sampled_from((None, 2, 4, 9)),
    st.sampled_from(FORCE),
)


def _to_request(call: Call) -> ToolRequest:
    source, destination, count, force = call
    optional: dict[str, Any] = {"count": count, "force": force}
    given_ones = {name: value for name, value in optional.items() if value is not None}
    return ToolRequest("alpha", "copy_item", {"source": source, "destination": destination, **given_ones})


def _is_below(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def _may_allow(call: Call, observed: list[Call]) -> bool:
    """Return True if observed calls explain an allowed one: the same up to a number between theirs."""
    source, destination, count, force = call
    numbers = [
        other[2]
        for other in observed
        if _is_below(source, other[0])
        and _is_below(destination, other[1])
        and bool(other[3]) == bool(force)
        and (other[2] is None) == (count is None)
    ]
    if count is None:
        return bool(numbers)
    known = [number for number in numbers if number is not None]
    return bool(known) and min(known) <= count <= max(known)


@pytest.mark.slow(reason="parses sentences of many shapes")
@settings(max_examples=example_count(100))
@given(st.lists(calls, min_size=1, max_size=6), st.lists(calls, max_size=20))
def test_suggestions_allow_the_observed_calls_and_no_new_values(
    observed: list[Call], others: list[Call]
) -> None:
    lines = [
        {
            "sequence": number,
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": request.arguments,
            "roles": [],
            "call_hash": call_hash(request),
            "decision": "deny",
            "rule_id": "",
            "outcome": "shadowed",
        }
        for number, request in enumerate(map(_to_request, observed), start=1)
    ]
    suggestion = suggest_sentences(EMPTY, lines)
    assert suggestion.left_out == ()
    kinds = {name: one["kind"] for name, one in suggestion.lists.items()}
    read = build_rules(suggestion.constitution, TOOLS, kinds)
    assert not read.unfollowed
    policy = compile_policy(policy_document(tools=TOOLS, lists=dict(suggestion.lists), rules=[*read.rules]))
    for call in observed:
        assert policy.decide(_to_request(call)).decision is Decision.ALLOW
    for call in others:
        if policy.decide(_to_request(call)).decision is Decision.ALLOW:
            assert _may_allow(call, observed)
