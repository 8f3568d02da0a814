"""Answers put together from pieces."""

from __future__ import annotations

import pytest

from peripety.errors import UnavailableError
from peripety.gateway.providers.completion_builder import CompletionBuilder
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
from peripety.gateway.types.message import Text, ToolCall
from peripety.gateway.types.response import SchemaMethod, StopReason, TextDelta, ToolCallDelta


def test_the_arguments_of_the_answer_tool_are_the_text_of_the_answer() -> None:
    assembly = CompletionBuilder(SchemaMethod.TOOL)
    call = assembly.open_call("c", ANSWER_TOOL)
    assert assembly.add_arguments(call, "") == []
    assert [*assembly.add_arguments(call, '{"a"'), *assembly.add_arguments(call, ": 1}")] == [
        TextDelta('{"a"'),
        TextDelta(": 1}"),
    ]
    assert assembly.finish(StopReason.TOOL_USE) == ((Text('{"a": 1}'),), StopReason.END)


def test_two_calls_cannot_have_one_id() -> None:
    assembly = CompletionBuilder()
    assembly.open_call("c", "take")
    with pytest.raises(UnavailableError) as caught:
        assembly.open_call("c", "take")
    assert caught.value.code == "STREAM_MALFORMED"


def test_every_other_tool_is_called_as_ever() -> None:
    assembly = CompletionBuilder(SchemaMethod.TOOL)
    deltas = assembly.add_arguments(assembly.open_call("c", "take"), "{}")
    assert deltas == [ToolCallDelta("c", "{}", "take")]
    assert assembly.finish(StopReason.END) == ((ToolCall("c", "take", "{}"),), StopReason.TOOL_USE)


def test_a_call_has_to_name_its_tool() -> None:
    with pytest.raises(UnavailableError) as caught:
        CompletionBuilder().open_call("c", "")
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize("reason", [StopReason.END, StopReason.TOOL_USE])
@pytest.mark.parametrize("arguments", ["{", "[1]", "nothing"])
def test_of_an_answer_that_ended_by_itself_every_call_has_to_be_whole(
    reason: StopReason,
    arguments: str,
) -> None:
    with pytest.raises(UnavailableError) as caught:
        calling(arguments, "{}").finish(reason)
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER])
def test_of_an_answer_that_was_cut_only_whole_calls_are_kept(reason: StopReason) -> None:
    assembly = calling('{"a": 1}', '{"a"', "")
    assert assembly.finish(reason) == ((ToolCall("c0", "take", '{"a": 1}'),), reason)


def test_a_call_without_arguments_is_whole_when_the_answer_ended_by_itself() -> None:
    assert calling("").finish(StopReason.TOOL_USE) == ((ToolCall("c0", "take", "{}"),), StopReason.TOOL_USE)


def test_nobody_is_told_to_call_tools_where_none_is_called() -> None:
    assembly = CompletionBuilder()
    assembly.add_text("a")
    assert assembly.finish(StopReason.TOOL_USE) == ((Text("a"),), StopReason.OTHER)


def calling(*arguments: str) -> CompletionBuilder:
    """An answer with a call for each of these arguments, all of them growing at once."""
    assembly = CompletionBuilder()
    calls = [assembly.open_call(f"c{place}", "take") for place in range(len(arguments))]
    for call, text in zip(calls, arguments, strict=True):
        assembly.add_arguments(call, text)
    return assembly
