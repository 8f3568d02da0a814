"""Round trip of agent runs through the database tables."""

from __future__ import annotations

import json

import pytest

from peripety.agent.manifest import (
    AgentRunEvent,
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseProgress,
    PhaseResult,
    PhaseStarted,
    ToolsRequested,
)
from peripety.agent.store import (
    decode_event,
    decode_manifest,
    decode_progress,
    encode_event,
    encode_manifest,
    encode_progress,
)
from peripety.core.runs.types import decode_error, encode_error
from peripety.errors import (
    FieldViolation,
    Finding,
    PeripetyError,
    ResourceExhaustedError,
    Severity,
    UnavailableError,
)
from peripety.gateway.conversations.conversation import HistoryPolicy, HistoryStrategy
from peripety.gateway.types.message import Tool, ToolCall, ToolResult
from peripety.gateway.types.request import (
    Budget,
    CacheConfig,
    CacheTTL,
    GenerationOptions,
    ResponseCacheMode,
    ResponseSchema,
)
from peripety.gateway.types.response import (
    ReasoningDelta,
    Repairing,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageTotal,
)
from support.gateway.fake_gateway import answer

CALL = ToolCall("c", "gauge", "{}")
RESULT = PhaseResult("a", "said", answer("done"), UsageTotal(1, Usage(2, 3), None), 4, 5, 6)


def test_a_manifest_with_everything_in_it() -> None:
    options = GenerationOptions(
        "m",
        9,
        0.5,
        7,
        ("stop",),
        ("other",),
        CacheConfig(ttl=CacheTTL.ONE_HOUR),
        ResponseCacheMode.USE,
        Budget(1, 2, 3, 4.5),
    )
    schema = ResponseSchema("n", {"type": "object", "properties": {"b": {}, "a": {}}})
    manifest = Manifest(
        "name",
        (Phase("a", "{{x}}", "s", options, ("gauge",), schema, 3), Phase("b", "y")),
        "system",
        (Tool("gauge", "d", {"type": "object"}, strict=True),),
        options,
        HistoryPolicy(HistoryStrategy.SLIDING_WINDOW, 5, 6),
    )
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_progress_in_the_middle_of_a_phase() -> None:
    answered = ((ToolResult("b", "\ud800", is_error=True),), ())
    progress = PhaseProgress(1, 2, 3, answered, (CALL,), 4, UsageTotal(1, Usage(2, 3), 4, 5))
    assert decode_progress(encode_progress(progress)) == progress


@pytest.mark.parametrize(
    "event",
    [
        PhaseStarted("a", "said"),
        TextDelta("half of a pair \ud83d"),
        ReasoningDelta("hm"),
        ToolCallDelta("c", "{", "gauge"),
        Repairing((Finding("CODE", "/a", "wrong", Severity.WARNING),), Usage(1, 2), 3),
        PhaseCompleted(RESULT),
        ToolsRequested("a", (CALL,)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_every_event(event: AgentRunEvent) -> None:
    assert decode_event(*encode_event(event)) == event


USAGE = (
    '{"input_tokens":2,"output_tokens":3,"cache_read_tokens":0,"cache_write_tokens":0,'
    '"reasoning_tokens":0,"long_cache_write_tokens":0}'
)
ROWS = [
    (PhaseStarted("a", "said"), "phase_started", '{"phase_id":"a","input":"said"}'),
    (TextDelta("half \ud83d"), "text", '{"text":"half \\ud83d"}'),
    (ReasoningDelta("hm"), "reasoning", '{"text":"hm"}'),
    (
        ToolCallDelta("c", "{", "gauge"),
        "tool_call",
        '{"call_id":"c","arguments_text":"{","name":"gauge"}',
    ),
    (
        Repairing((Finding("CODE", "/a", "wrong", Severity.WARNING),), Usage(2, 3), 3),
        "repairing",
        f'{{"findings":[["CODE","/a","wrong","WARNING"]],"usage":{USAGE},"calls":3}}',
    ),
    (
        ToolsRequested("a", (CALL,)),
        "tools_requested",
        '{"phase_id":"a","calls":[{"call_id":"c","name":"gauge","arguments":"{}"}]}',
    ),
]


@pytest.mark.parametrize(("event", "kind", "text"), ROWS, ids=[kind for _, kind, _ in ROWS])
def test_the_stored_form_of_events_is_fixed(event: AgentRunEvent, kind: str, text: str) -> None:
    assert encode_event(event) == (kind, text)
    assert decode_event(kind, text) == event


def test_the_stored_form_of_progress_is_fixed() -> None:
    progress = PhaseProgress(
        1,
        2,
        3,
        ((ToolResult("b", "\ud800", is_error=True),), ()),
        (CALL,),
        4,
        UsageTotal(1, Usage(2, 3), 4, 5),
    )
    spent = f'{{"calls":1,"usage":{USAGE},"cost":4,"cache_savings":5}}'
    text = (
        '{"phase":1,"turns_before":2,"started":3,"answered":[[{"call_id":"b","text":"\\ud800","is_error":true}],'
        '[]],"pending":[{"call_id":"c","name":"gauge","arguments":"{}"}],"worked":4,"spent":'
        + json.dumps(spent)
        + "}"
    )
    assert encode_progress(progress) == text
    assert decode_progress(text) == progress


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("gone", code="PROVIDER_FAILED", details={"a": "b"}, retry_after=1.5),
        ResourceExhaustedError("used up", violations=[FieldViolation("f", "r")]),
    ],
    ids=lambda error: error.code,
)
def test_why_a_run_failed(error: PeripetyError) -> None:
    read = decode_error(encode_error(error))
    assert type(read) is type(error)
    assert read is not None
    assert vars(read) == vars(error)
    assert decode_error(encode_error(None)) is None
