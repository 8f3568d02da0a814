"""Estimates of tokens."""

from __future__ import annotations

import pytest

from peripety.gateway.prompt_cache.prefix import Segment
from peripety.gateway.token_estimate import LengthTokenEstimator
from peripety.gateway.types.message import Text, Tool, ToolCall, ToolResult
from peripety.gateway.types.request import ResponseSchema
from peripety.gateway.types.response import CacheBlock
from support.gateway.requests import asking, call_of

CALL = call_of(asking(), "claude-opus-5-5", "anthropic")
OTHER = call_of(asking(), "claude-sonnet-5", "anthropic")
TEXT = Segment(CacheBlock.MESSAGE, Text("x" * 4_000))


def test_a_token_is_about_four_bytes() -> None:
    count = LengthTokenEstimator().counter_for(CALL)
    assert count(TEXT) == 1_004
    assert count(Segment(CacheBlock.MESSAGE, Text("\u4e16" * 400))) == 304


@pytest.mark.parametrize(
    "content",
    [
        Tool("a", "b" * 400, {"type": "object"}),
        ResponseSchema("a", {"description": "b" * 400}),
        ToolCall("1", "a", "b" * 400),
        ToolResult("1", "b" * 400),
    ],
)
def test_everything_that_is_sent_is_counted(content: Tool | ResponseSchema | ToolCall | ToolResult) -> None:
    assert 104 <= LengthTokenEstimator().counter_for(CALL)(Segment(CacheBlock.MESSAGE, content)) <= 115


def test_a_blank_text_is_not_sent() -> None:
    assert LengthTokenEstimator().counter_for(CALL)(Segment(CacheBlock.MESSAGE, Text(" \n"))) == 0


def test_reports_of_a_model_correct_what_is_counted_for_it() -> None:
    tokens = LengthTokenEstimator()
    for _ in range(30):
        counted = tokens.counter_for(CALL)(TEXT)
        tokens.calibrate(CALL, counted, 1_506)
    assert abs(tokens.counter_for(CALL)(TEXT) - 1_506) <= 1
    assert tokens.counter_for(OTHER)(TEXT) == 1_004


def test_a_report_of_nothing_corrects_nothing() -> None:
    tokens = LengthTokenEstimator()
    tokens.calibrate(CALL, 1_000, 0)
    assert tokens.counter_for(CALL)(TEXT) == 1_004
