"""Requests and answers of the gateway's clients are the same on both sides of the wire."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.errors import Finding, Severity
from peripety.gateway.pb.requests import request_from_proto, request_to_proto
from peripety.gateway.pb.responses import answer_event_to_proto, event_from_proto
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.request import (
    Budget,
    CacheConfig,
    CacheTTL,
    GenerateRequest,
    ReasoningEffort,
    ResponseCacheMode,
    ResponseSchema,
)
from peripety.gateway.types.response import (
    CacheBlock,
    CacheBreakpoint,
    CachePlan,
    Completed,
    Completion,
    FallingBack,
    GatewayEvent,
    ReasoningDelta,
    Repairing,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from support.repo.repository import ALL_ERRORS, example

names = st.text(min_size=1, max_size=8)
whole = st.integers(0, 2**31 - 1)
pico = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=3)
parts = st.one_of(
    st.builds(Text, st.text()),
    st.builds(ToolCall, names, names, objects.map(json.dumps)),
    st.builds(ToolResult, names, st.text(), st.booleans()),
    st.builds(Reasoning, st.text()),
    st.builds(ProviderState, names, st.binary()),
)
messages = st.builds(ChatMessage, st.sampled_from(ChatRole), st.lists(parts, max_size=4).map(tuple))
caps = st.none() | st.integers(1, 2**31 - 1)
ASKED: dict[str, st.SearchStrategy[Any]] = {
    "system": st.none() | names,
    "messages": st.lists(messages, max_size=3).map(tuple),
    "schema": st.none() | st.builds(ResponseSchema, names, objects),
    "model": st.none() | names,
    "max_output_tokens": st.none() | whole,
    "answer_tokens": st.none() | whole,
    "reasoning_effort": st.none() | st.sampled_from(ReasoningEffort),
    "temperature": st.none() | st.floats(0, 2),
    "seed": st.none() | st.integers(0, 2**53 - 1),
    "response_cache": st.sampled_from(ResponseCacheMode),
    "tools": st.lists(st.builds(Tool, names, st.text(), objects, st.booleans()), max_size=2).map(tuple),
    "tool_choice": st.none()
    | st.builds(ToolChoice, st.sampled_from(ToolChoiceMode), st.none() | names, st.booleans()),
    "fallback_models": st.lists(names, max_size=2).map(tuple),
    "stop_sequences": st.lists(names, max_size=2).map(tuple),
    "cache": st.builds(CacheConfig, st.booleans(), st.sampled_from(CacheTTL), whole),
    "budget": st.none()
    | st.builds(Budget, caps, caps, caps, st.none() | st.integers(1, 10**9).map(lambda ms: ms / 1000)),
}
usages = st.builds(Usage, whole, whole, whole, whole, whole)
findings = st.lists(
    st.builds(Finding, names, st.text(), st.text(), st.sampled_from(Severity)),
    max_size=3,
).map(tuple)
breakpoints = st.builds(CacheBreakpoint, st.sampled_from(CacheBlock), st.sampled_from(CacheTTL), whole)
plans = st.builds(
    CachePlan,
    st.lists(breakpoints, max_size=4).map(tuple),
    whole,
    whole,
    st.none() | breakpoints,
)
ANSWERED: dict[str, st.SearchStrategy[Any]] = {
    "message": messages,
    "value": values,
    "usage": usages,
    "stop_reason": st.sampled_from(StopReason),
    "model": names,
    "provider": names,
    "repaired": st.booleans(),
    "findings": findings,
    "calls": whole,
    "from_response_cache": st.booleans(),
    "schema_report": st.none() | st.builds(SchemaReport, st.sampled_from(SchemaMethod), findings),
    "cost": st.none() | pico,
    "cache_savings": st.none() | pico,
    "cache_plan": st.none() | plans,
    "conversation_turn": whole,
}
events = st.one_of(
    st.builds(TextDelta, st.text()),
    st.builds(ReasoningDelta, st.text()),
    st.builds(ToolCallDelta, names, st.text(), st.text()),
    st.builds(Repairing, findings, usages, whole),
    st.builds(Completed, st.builds(Completion, **ANSWERED)),
)


def told(event: GatewayEvent) -> GatewayEvent | None:
    """An event as a client reads it."""
    return event_from_proto(
        pb.GenerateResponse.FromString(answer_event_to_proto(1, event).SerializeToString()),
    )


@given(st.builds(GenerateRequest, **ASKED))
def test_a_request_arrives_as_it_was_asked(request: GenerateRequest) -> None:
    arrived = pb.GenerateRequest.FromString(request_to_proto(request).SerializeToString())
    assert request_from_proto(arrived) == request


@given(events)
def test_an_event_arrives_as_it_happened(event: GatewayEvent) -> None:
    assert told(event) == event


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
def test_the_cause_of_a_fallback_arrives_as_the_error_that_it_was(kind: Any) -> None:
    cause = example(kind)
    event = told(FallingBack("a/b", "c/d", cause))
    assert isinstance(event, FallingBack)
    assert (event.from_model, event.to_model) == ("a/b", "c/d")
    there = event.cause
    assert isinstance(cause, type(there))
    assert (there.code, there.details, there.violations, there.retry_after) == (
        cause.code,
        cause.details,
        cause.violations,
        cause.retry_after,
    )
    assert str(there) == str(cause)


def test_nothing_of_a_request_or_an_answer_is_left_out_here() -> None:
    # Stored conversations have calls of their own, outside of a client's gateway.
    own = {"conversation_id", "conversation_budget"}
    assert {field.name for field in fields(GenerateRequest)} == ASKED.keys() | own
    assert {field.name for field in fields(Completion)} == set(ANSWERED)
