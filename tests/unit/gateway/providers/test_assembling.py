"""Answers put together from pieces."""

from __future__ import annotations

import pytest

from peripety.errors import UnavailableError
from peripety.gateway.model import Text, TextDelta, ToolCall, ToolCallDelta
from peripety.gateway.providers.assembling import Assembly


def test_the_arguments_of_the_answer_tool_are_the_text_of_the_answer() -> None:
    assembly = Assembly(answer_tool="give")
    call = assembly.open_call("c", "give")
    assert assembly.add_arguments(call, "") == []
    assert [*assembly.add_arguments(call, '{"a"'), *assembly.add_arguments(call, ": 1}")] == [
        TextDelta('{"a"'),
        TextDelta(": 1}"),
    ]
    assert assembly.parts() == (Text('{"a": 1}'),)


def test_two_calls_cannot_have_one_id() -> None:
    assembly = Assembly()
    assembly.open_call("c", "take")
    with pytest.raises(UnavailableError) as caught:
        assembly.open_call("c", "take")
    assert caught.value.code == "STREAM_MALFORMED"


def test_every_other_tool_is_called_as_ever() -> None:
    assembly = Assembly(answer_tool="give")
    deltas = assembly.add_arguments(assembly.open_call("c", "take"), "{}")
    assert deltas == [ToolCallDelta("c", "{}", "take")]
    assert assembly.parts() == (ToolCall("c", "take", "{}"),)
