"""How answers are written down and told again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.errors import Finding, Severity
from peripety.gateway.response_cache.tiers import (
    StoredAnswer,
    decode_answer,
    encode_answer,
    is_storable,
    replay_answer,
    without_usage,
)
from peripety.gateway.types.message import ChatMessage, ChatRole, ProviderState, Reasoning, Text, ToolCall
from peripety.gateway.types.response import (
    Completed,
    Completion,
    ReasoningDelta,
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)

FINDINGS = (Finding("CODE", "/a", "why"), Finding("OTHER", "", "why not", Severity.WARNING))
PARTS = (
    ProviderState("p", b"\x00\xff"),
    Text("é😀\ud800" * 700),
    Reasoning("why"),
    ToolCall("c", "t:1", '{"a": 1}'),
)
ANSWER = Completion(
    ChatMessage(ChatRole.ASSISTANT, PARTS),
    {"a": [1, 1.0, None]},
    Usage(1, 2, 3, 4),
    StopReason.END,
    "m",
    "p",
    True,
    FINDINGS,
    2,
    schema_report=SchemaReport(SchemaMethod.NATIVE, FINDINGS),
)


def test_an_answer_comes_back_as_it_was_without_its_cost() -> None:
    assert decode_answer(encode_answer(ANSWER)) == replace(
        ANSWER,
        usage=Usage(),
        cost=0,
        cache_savings=0,
        calls=0,
        from_response_cache=True,
    )
    assert decode_answer(encode_answer(ANSWER)) == without_usage(ANSWER)
    without = replace(ANSWER, schema_report=None)
    assert decode_answer(encode_answer(without)) == without_usage(without)
    assert isinstance(decode_answer(encode_answer(ANSWER)).value["a"][1], float)  # type: ignore[index]


def test_a_stored_answer_is_a_stream_of_pieces_and_its_completion() -> None:
    *pieces, last = replay_answer(StoredAnswer(encode_answer(ANSWER), 0))
    texts = [piece.text for piece in pieces if isinstance(piece, TextDelta)]
    assert len(texts) == 5
    assert pieces[5:] == [ReasoningDelta("why"), ToolCallDelta("c", '{"a": 1}', "t:1")]
    assert "".join(texts) == ANSWER.text
    assert last == Completed(without_usage(ANSWER))


def test_an_empty_answer_has_no_pieces() -> None:
    assert (
        len(
            list(
                replay_answer(
                    StoredAnswer(encode_answer(replace(ANSWER, message=ChatMessage.assistant(""))), 0),
                ),
            ),
        )
        == 1
    )


@pytest.mark.parametrize("reason", StopReason)
def test_only_an_answer_that_came_to_its_own_end_may_be_stored(reason: StopReason) -> None:
    assert is_storable(replace(ANSWER, stop_reason=reason)) == (
        reason in {StopReason.END, StopReason.TOOL_USE}
    )


def test_an_answer_with_findings_may_be_stored_only_when_its_repair_mended_them() -> None:
    assert is_storable(ANSWER)
    assert not is_storable(replace(ANSWER, repaired=False))
    assert is_storable(replace(ANSWER, repaired=False, findings=()))
