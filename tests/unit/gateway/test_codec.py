from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from peripety.errors import Finding, Severity
from peripety.gateway.codec import (
    decode_completion,
    decode_message,
    decode_tool,
    encode_completion,
    encode_message,
    encode_tool,
)
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from peripety.gateway.types.request import CacheTTL
from peripety.gateway.types.response import (
    CacheBlock,
    CacheBreakpoint,
    CachePlan,
    Completion,
    SchemaMethod,
    SchemaReport,
    StopReason,
    Usage,
)

FINDINGS = (Finding("A", "/a", "why"), Finding("B", "", "why not", Severity.WARNING))
HERE = CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.ONE_HOUR, 3)
COMPLETION = Completion(
    message=ChatMessage(
        ChatRole.ASSISTANT,
        (Reasoning("r"), ProviderState("p", b"\x00\xff"), Text("é\ud800"), ToolCall("c", "t", '{"a":1}')),
    ),
    value={"a": [1, 1.0, None]},
    usage=Usage(1, 2, 3, 4, 5, 6),
    stop_reason=StopReason.TOOL_USE,
    model="m",
    provider="p",
    repaired=True,
    findings=FINDINGS,
    calls=2,
    from_response_cache=True,
    schema_report=SchemaReport(SchemaMethod.TOOL, FINDINGS),
    cost=7,
    cache_savings=-8,
    cache_plan=CachePlan((HERE,), 9, 10, HERE),
    conversation_turn=11,
)


def through_json(completion: Completion) -> Completion:
    return decode_completion(json.loads(json.dumps(encode_completion(completion))))


def test_an_answer_comes_back_with_every_field() -> None:
    assert through_json(COMPLETION) == COMPLETION
    bare = {field.name: field.default for field in fields(Completion) if field.name != "calls"}
    assert all(getattr(COMPLETION, name) != default for name, default in bare.items())


@pytest.mark.parametrize(
    "without",
    [
        replace(COMPLETION, schema_report=None),
        replace(COMPLETION, cost=None, cache_savings=None),
        replace(COMPLETION, cache_plan=None),
        replace(COMPLETION, cache_plan=CachePlan()),
        replace(COMPLETION, value=None),
    ],
)
def test_what_an_answer_lacks_it_still_lacks(without: Completion) -> None:
    assert through_json(without) == without


def test_messages_and_tools_come_back_as_they_were() -> None:
    results = ChatMessage(ChatRole.USER, (ToolResult("c", "x", is_error=True), Text("t")))
    assert decode_message(json.loads(json.dumps(encode_message(results)))) == results
    tool = Tool("n:1", "d", {"type": "object", "properties": {"b": {}, "a": {}}}, strict=True)
    back = decode_tool(json.loads(json.dumps(encode_tool(tool))))
    assert back == tool
    assert list(back.input_schema["properties"]) == ["b", "a"]
