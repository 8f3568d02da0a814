"""What the tables of runs hold can be read as it was."""

from __future__ import annotations

import pytest

from peripety.durable.writing import read_error, write_error
from peripety.errors import (
    FieldViolation,
    Finding,
    PeripetyError,
    ResourceExhaustedError,
    Severity,
    UnavailableError,
)
from peripety.gateway.agents.model import (
    Manifest,
    Phase,
    PhaseCompleted,
    PhaseResult,
    PhaseStarted,
    Progress,
    RunEvent,
    ToolsRequested,
)
from peripety.gateway.agents.writing import (
    read_event,
    read_manifest,
    read_progress,
    write_event,
    write_manifest,
    write_progress,
)
from peripety.gateway.conversations.window import HistoryPolicy, HistoryStrategy
from peripety.gateway.model import (
    Budget,
    CacheConfig,
    CacheTTL,
    Options,
    ReasoningDelta,
    Repairing,
    ResponseCacheMode,
    ResponseSchema,
    Spent,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)
from support.gated_gateway import answer

CALL = ToolCall("c", "gauge", "{}")
RESULT = PhaseResult("a", "said", answer("done"), Spent(1, Usage(2, 3), None), 4, 5, 6)


def test_a_manifest_with_everything_in_it() -> None:
    options = Options(
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
    assert read_manifest(write_manifest(manifest)) == manifest


def test_progress_in_the_middle_of_a_phase() -> None:
    answered = ((ToolResult("b", "\ud800", is_error=True),), ())
    progress = Progress(1, 2, 3, answered, (CALL,), 4, Spent(1, Usage(2, 3), 4, 5))
    assert read_progress(write_progress(progress)) == progress


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
def test_every_event(event: RunEvent) -> None:
    assert read_event(*write_event(event)) == event


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError("gone", code="PROVIDER_FAILED", details={"a": "b"}, retry_after=1.5),
        ResourceExhaustedError("used up", violations=[FieldViolation("f", "r")]),
    ],
    ids=lambda error: error.code,
)
def test_why_a_run_failed(error: PeripetyError) -> None:
    read = read_error(write_error(error))
    assert type(read) is type(error)
    assert read is not None
    assert vars(read) == vars(error)
    assert read_error(write_error(None)) is None
