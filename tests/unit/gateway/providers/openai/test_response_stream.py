"""Reading an answer of Chat Completions, whatever the server makes of the format.

Thoughts between tags in a model's text, however the network cuts it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI
from peripety.gateway.providers.openai.response_stream import (
    ChatCompletionStream,
    ChatCompletionsWire,
    ThinkTagParser,
)
from peripety.gateway.providers.provider import Endpoint
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
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
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import (
    ReasoningDelta,
    SchemaMethod,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from support.gateway.fake_server import delta, event, finish, usage
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.provider import AnswerFinished, Delta, ProviderCall


DONE = b"data: [DONE]"
TOOLS = (Tool("gauge", "Reads.", {"type": "object"}), Tool("a.b", "Is.", {"type": "object"}))
CALL = call_of(asking(tools=TOOLS))


def stream_of(
    call: ProviderCall = CALL,
    dialect: Dialect = GENERIC,
    method: SchemaMethod | None = None,
) -> ChatCompletionStream:
    failures = ErrorMapper(Endpoint("generic", "http://a/v1"), "m", ChatCompletionsWire.vocabulary)
    return ChatCompletionStream(failures, call, method, dialect)


def fed(stream: ChatCompletionStream, *events: bytes) -> list[Delta]:
    datas = [event.decode().removeprefix("data: ").strip() for event in events]
    return [delta for data in datas for delta in stream.feed(data)]


def read(*events: bytes, **options: Any) -> tuple[str, AnswerFinished]:
    """Return the text of the deltas and the final event, after checking that both agree."""
    stream = stream_of(**options)
    deltas = fed(stream, *events)
    end = stream.finish()
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert text == "".join(part.text for part in end.parts if isinstance(part, Text))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert thought == "".join(part.text for part in end.parts if isinstance(part, Reasoning))
    for call in (part for part in end.parts if isinstance(part, ToolCall)):
        of_it = [d for d in deltas if isinstance(d, ToolCallDelta) and d.call_id == call.call_id]
        assert [d.name for d in of_it] == [call.name] + [""] * (len(of_it) - 1)
        assert "".join(d.arguments_text for d in of_it).strip() in {call.arguments, ""}
    return text, end


def calls_in(end: AnswerFinished) -> list[ToolCall]:
    return [part for part in end.parts if isinstance(part, ToolCall)]


def piece(index: int | None = None, name: str | None = None, arguments: str = "", **more: Any) -> bytes:
    """A piece of a tool call."""
    function = {"arguments": arguments, **({} if name is None else {"name": name})}
    place = {} if index is None else {"index": index}
    return event({"choices": [{"delta": {"tool_calls": [{**place, "function": function, **more}]}}]})


def thought(text: str, field: str = "reasoning_content") -> bytes:
    return event({"choices": [{"delta": {"content": None, field: text}}]})


# ---- text, ends and usage


def test_a_whole_answer_is_read_with_its_end_and_its_usage() -> None:
    text, end = read(delta(None), delta("a"), delta(""), delta("b"), finish(), usage(5, 2, 3), DONE)
    assert (text, end.stop_reason, end.model) == ("ab", StopReason.END, "m-1")
    assert end.usage == Usage(5, 2, 3, 0)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", StopReason.END),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSAL),
        ("tool_calls", StopReason.OTHER),
        ("new", StopReason.OTHER),
    ],
)
def test_every_reason_to_stop_has_a_meaning(reason: str, expected: StopReason) -> None:
    assert read(delta("a"), finish(reason))[1].stop_reason is expected


def test_an_end_without_done_and_without_usage_is_an_end() -> None:
    assert read(delta("a", finish_reason="stop"))[1].usage == Usage()


def test_done_without_a_reason_is_an_end() -> None:
    assert read(delta("a"), DONE)[1].stop_reason is StopReason.END


@pytest.mark.parametrize("events", [[], [delta("a")], [delta(None)], [delta("a"), usage(1, 1)]])
def test_an_end_that_was_not_announced_is_a_cut(events: list[bytes]) -> None:
    stream = stream_of()
    fed(stream, *events)
    assert not stream.complete
    with pytest.raises(UnavailableError) as caught:
        stream.finish()
    assert caught.value.code == "STREAM_TRUNCATED"


def test_a_refusal_is_told_in_its_words() -> None:
    refusal = [event({"choices": [{"delta": {"refusal": word}}]}) for word in ("I ", "can't")]
    text, end = read(*refusal, finish())
    assert (text, end.stop_reason) == ("I can't", StopReason.REFUSAL)


def test_other_choices_padding_and_unknown_fields_are_ignored() -> None:
    other = event(
        {
            "choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "length"}],
            "obfuscation": "xx",
        },
    )
    text, end = read(delta("a"), other, finish())
    assert (text, end.stop_reason) == ("a", StopReason.END)


def test_what_azure_says_of_its_filters_is_no_part_of_the_answer() -> None:
    filters = event({"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": ""})
    offsets = event({"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}}]})
    text, end = read(filters, delta("a"), offsets, finish(), dialect=AZURE)
    assert (text, end.model) == ("a", "m-1")


def test_counts_of_writes_and_of_reasoning_are_read() -> None:
    counts = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    _, end = read(delta("a"), finish(), event({"choices": [], "usage": counts}))
    assert end.usage == Usage(9, 5, 2, 4, 3)


@pytest.mark.parametrize("count", [10**30, -1, "9", 1.5])
def test_a_count_that_cannot_be_is_none_and_the_answer_stands(count: Any) -> None:
    counts = {"prompt_tokens": count, "completion_tokens": 5}
    text, end = read(delta("a"), finish(), event({"choices": [], "usage": counts}))
    assert (text, end.usage) == ("a", Usage(0, 5))


def test_counts_that_come_with_every_chunk_are_not_added_up() -> None:
    counted = [delta("a", usage={"prompt_tokens": 9}), usage(9, 1), usage(9, 2)]
    assert read(*counted, finish())[1].usage == Usage(9, 2)


def test_deepseeks_own_name_of_cached_tokens_is_known() -> None:
    counts = {"prompt_tokens": 9, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3}
    _, end = read(delta("a"), finish(), event({"choices": [], "usage": counts}), dialect=DEEPSEEK)
    assert end.usage == Usage(9, 0, 6)


# ---- tool calls


def test_calls_are_joined_by_their_index() -> None:
    _, end = read(
        delta(None),
        piece(0, "gauge", "", id="c-1"),
        piece(0, None, '{"a"'),
        piece(1, "t_a_b_90a4c35a", "", id="c-2"),
        piece(0, None, ": 1}"),
        piece(1, None, "{}"),
        finish("tool_calls"),
    )
    assert end.parts[0] == ToolCall("c-1", "gauge", '{"a": 1}')
    assert (calls_in(end)[1].call_id, calls_in(end)[1].arguments) == ("c-2", "{}")
    assert end.stop_reason is StopReason.TOOL_USE


def test_the_name_of_a_tool_is_the_one_that_it_was_offered_under() -> None:
    wire_name = ChatCompletionsWire(GENERIC).body(CALL).document["tools"][1]["function"]["name"]
    assert calls_in(read(piece(0, wire_name, "{}", id="c"), finish("tool_calls"))[1])[0].name == "a.b"


WHOLE = {
    "without an index": [
        piece(None, "gauge", '{"a":1}', id="c-1"),
        piece(None, "gauge", '{"a":2}', id="c-2"),
    ],
    "with one index": [piece(0, "gauge", '{"a":1}', id="c-1"), piece(0, "gauge", '{"a":2}', id="c-2")],
    "without ids": [piece(None, "gauge", '{"a":1}'), piece(None, "gauge", '{"a":2}')],
    "with ids in every piece": [
        piece(0, "gauge", '{"a":', id="c-1"),
        piece(0, "gauge", "1}", id="c-1"),
        piece(1, "gauge", '{"a":2}', id="c-2"),
    ],
    "in one chunk": [
        event(
            {
                "choices": [
                    {
                        "delta": {
                            "role": "assistant",
                            "content": "",
                            "tool_calls": [
                                {"id": "c-1", "function": {"name": "gauge", "arguments": '{"a":1}'}},
                                {"id": "c-2", "function": {"name": "gauge", "arguments": '{"a":2}'}},
                            ],
                        },
                    },
                ],
            },
        ),
    ],
    "in pieces without anything": [
        piece(None, "gauge", '{"a":', id="c-1"),
        piece(None, None, "1}"),
        piece(None, "gauge", '{"a":2}', id="c-2"),
    ],
}


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call"])
@pytest.mark.parametrize("shape", WHOLE)
def test_calls_are_read_as_servers_send_them(shape: str, reason: str) -> None:
    _, end = read(*WHOLE[shape], finish(reason))
    assert [call.arguments for call in calls_in(end)] == ['{"a":1}', '{"a":2}']
    assert len({call.call_id for call in calls_in(end)}) == 2
    assert end.stop_reason is StopReason.TOOL_USE


def test_calls_before_a_bare_done_are_to_be_made() -> None:
    assert read(*WHOLE["in one chunk"], DONE)[1].stop_reason is StopReason.TOOL_USE


def test_an_id_that_the_conversation_has_already_is_not_used_again() -> None:
    before = ChatMessage(ChatRole.ASSISTANT, (ToolCall("call_0", "gauge", "{}"),))
    result = ChatMessage(ChatRole.USER, (ToolResult("call_0", "7"),))
    call = call_of(GenerateRequest("s", (ChatMessage.user("u"), before, result), tools=TOOLS))
    _, end = read(piece(0, "gauge", "{}", id="call_0"), finish("tool_calls"), call=call)
    assert calls_in(end)[0].call_id not in {"call_0", ""}


def test_a_call_without_arguments_has_none() -> None:
    assert calls_in(read(piece(0, "gauge", "", id="c"), finish("tool_calls"))[1])[0].arguments == "{}"


def test_a_last_call_that_the_limit_cut_off_is_left_out() -> None:
    _, end = read(delta("a"), piece(0, "gauge", '{"a', id="c"), finish("length"))
    assert (end.parts, end.stop_reason) == ((Text("a"),), StopReason.LENGTH)


def test_arguments_that_are_no_object_are_an_error() -> None:
    with pytest.raises(UnavailableError, match="gauge"):
        read(piece(0, "gauge", "[1]", id="c"), finish("tool_calls"))


@pytest.mark.parametrize(
    "stray",
    [piece(0, None, "{}"), piece(None, None, "{}"), piece(0, None, "{}", id="c")],
)
def test_a_piece_of_no_call_is_an_error(stray: bytes) -> None:
    with pytest.raises(UnavailableError) as caught:
        fed(stream_of(), stray)
    assert caught.value.code == "STREAM_MALFORMED"


def test_the_answer_of_the_answer_tool_is_text() -> None:
    text, end = read(
        piece(0, ANSWER_TOOL, "", id="c"),
        piece(0, None, '{"a": 1}'),
        finish("tool_calls"),
        method=SchemaMethod.TOOL,
    )
    assert (text, end.stop_reason, end.parts) == ('{"a": 1}', StopReason.END, (Text('{"a": 1}'),))


@pytest.mark.parametrize("events", WHOLE.values(), ids=WHOLE)
def test_a_stream_that_ends_after_any_event_is_a_cut_until_its_end_is_known(events: list[bytes]) -> None:
    whole = [delta(None), delta("a"), *events, finish("tool_calls"), usage(1, 1), DONE]
    for length in range(len(whole) + 1):
        stream = stream_of()
        fed(stream, *whole[:length])
        if length > whole.index(finish("tool_calls")):
            assert len(calls_in(stream.finish())) == 2
        else:
            with pytest.raises(UnavailableError, match="truncated"):
                stream.finish()


# ---- thoughts


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_in_a_field_of_their_own_are_reasoning(field: str) -> None:
    _, end = read(thought("h", field), thought("m", field), delta("a"), finish())
    assert end.parts == (Reasoning("hm"), Text("a"))


def test_deepseeks_thoughts_are_kept_as_it_wants_them_back() -> None:
    call = call_of(asking(), "deepseek-flash", "deepseek")
    _, end = read(thought("h"), thought("m"), delta("a"), finish(), call=call, dialect=DEEPSEEK)
    assert end.parts == (Reasoning("hm"), Text("a"), ProviderState("deepseek", b"hm"))


def test_thoughts_between_tags_are_reasoning_on_servers_that_leave_them_there() -> None:
    events = [delta("<th"), delta("ink>h"), delta("m</think>"), delta("\n\na"), finish()]
    assert read(*events)[1].parts == (Reasoning("hm"), Text("a"))
    for dialect in (OPENAI, AZURE, DEEPSEEK):
        assert read(*events, dialect=dialect)[1].parts == (Text("<think>hm</think>\n\na"),)


REASONING = [
    replace(CALL, data=replace(CALL.data, capabilities=frozenset({Capability.REASONING}))),
    call_of(asking(tools=TOOLS), "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
    call_of(asking(tools=TOOLS), "Qwen/Qwen3-30B-A3B-Thinking-2507"),
]


@pytest.mark.parametrize("call", REASONING, ids=lambda call: call.model)
def test_thoughts_that_the_template_began_are_reasoning_of_models_that_reason(call: ProviderCall) -> None:
    assert read(delta("hm</think>a"), finish(), call=call)[1].parts == (Reasoning("hm"), Text("a"))
    assert read(delta("hm"), finish("length"), call=call)[1].parts == (Reasoning("hm"),)
    assert read(delta("a"), finish(), call=call)[1].parts == (Text("a"),)
    assert read(delta("a"), DONE, call=call)[1].parts == (Text("a"),)
    assert read(delta("a"), piece(0, "gauge", "{}", id="c"), finish(), call=call)[1].parts[0] == Text("a")


def test_an_answer_that_a_grammar_holds_to_its_schema_is_not_held_back() -> None:
    stream = stream_of(REASONING[0], method=SchemaMethod.GRAMMAR)
    assert fed(stream, delta("{")) == [TextDelta("{")]


def test_a_server_without_resources_to_go_on_has_failed() -> None:
    with pytest.raises(UnavailableError) as caught:
        read(delta("a"), finish("insufficient_system_resource"), dialect=DEEPSEEK)
    assert caught.value.code == "PROVIDER_FAILED"


# ---- what cannot be read, and errors


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        "7",
        '{"choices": 7}',
        '{"choices": [7]}',
        '{"choices": [{"delta": {"content": 7}}]}',
        '{"usage": 7}',
        '{"choices": [{"delta": "x"}]}',
        '{"choices": [{"delta": {"tool_calls": 7}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": "0", "function": {"name": "a"}}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "", "arguments": 7}}]}}]}',
    ],
)
def test_a_chunk_of_the_wrong_shape_is_an_error(data: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        stream_of().feed(data)
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": 500}, UnavailableError),
        ({"message": "x", "type": "server_error"}, UnavailableError),
        ({"message": "x", "code": "rate_limit_exceeded"}, ResourceExhaustedError),
        ({"message": "x", "type": "invalid_request_error", "code": None}, InvalidArgumentError),
        ({"message": "x", "code": 400, "type": "exceed_context_size_error"}, InvalidArgumentError),
        # DeepSeek gives one code to all errors.
        ({"code": "invalid_request_error", "type": "rate_limit_error"}, ResourceExhaustedError),
        ({"code": "invalid_request_error", "type": "internal_error"}, UnavailableError),
        ({"code": "invalid_request_error", "type": "authentication_error"}, FailedPreconditionError),
        ("x", UnavailableError),
    ],
)
def test_an_error_inside_the_stream_is_raised_for_what_it_is(error: Any, kind: type[PeripetyError]) -> None:
    with pytest.raises(kind):
        stream_of().feed(json.dumps({"error": error}))


TAGGED = [
    ("<think>hm</think>\n\nyes", "hm", "yes"),
    (" \n<think>\nhm\n</think> yes", "\nhm\n", "yes"),
    ("<thinking>hm</thinking>yes", "hm", "yes"),
    ("<mm:think>hm</mm:think>yes", "hm", "yes"),
    ("[THINK]hm[/THINK]yes", "hm", "yes"),
    ("<think></think>yes", "", "yes"),
    ("<think>a < b </ thin</think>yes", "a < b </ thin", "yes"),
    ("<think>hm</think>yes </think> <think>no</think>", "hm", "yes </think> <think>no</think>"),
]
PLAIN = [
    "yes",
    "<thin air",
    "<b>x</b>",
    "[1, 2]",
    "in code: `<think>`",
    " ",
    "<",
    "  yes",
]
UNOPENED = [
    ("hm</think>\n\nyes", "hm", "yes"),
    ("hm [/THINK]yes", "hm ", "yes"),
    ("</think>yes", "", "yes"),
]


def parted(pieces: list[str], *, thinks: bool, cut: bool = False) -> tuple[str, str]:
    inline = ThinkTagParser(is_reasoning_model=thinks)
    parts = [part for piece in pieces for part in inline.feed(piece)] + inline.finish(truncated=cut)
    order = [type(part) for part in parts]
    assert order == sorted(order, key=lambda kind: kind is Text), "a thought comes first"
    assert all(part.text for part in parts)
    return (
        "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "".join(part.text for part in parts if isinstance(part, Text)),
    )


def cuts(text: str) -> list[list[str]]:
    """The text whole, in characters, and cut once at every place."""
    return [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize(("whole", "thought", "answer"), TAGGED)
def test_a_thought_at_the_beginning_is_told_apart(
    whole: str,
    thought: str,
    answer: str,
    *,
    thinks: bool,
) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=thinks) == (thought, answer)


@pytest.mark.parametrize("whole", PLAIN)
def test_an_answer_without_a_thought_is_all_text(whole: str) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=True) == ("", whole)
        assert parted(pieces, thinks=False) == ("", whole)


def test_tags_further_on_are_part_of_the_answer() -> None:
    for pieces in cuts("a <think>b</think>"):
        assert parted(pieces, thinks=False) == ("", "a <think>b</think>")


@pytest.mark.parametrize(("whole", "thought", "answer"), UNOPENED)
def test_a_thought_that_the_template_began_is_told_apart_of_models_that_think(
    whole: str,
    thought: str,
    answer: str,
) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=True) == (thought, answer)
        assert parted(pieces, thinks=False) == ("", whole)


@pytest.mark.parametrize("whole", ["<think>hm", "<think>hm</thi"])
def test_a_thought_that_does_not_end_is_a_thought(whole: str) -> None:
    for pieces in cuts(whole):
        assert parted(pieces, thinks=False) == (whole.removeprefix("<think>"), "")


def test_what_began_without_a_tag_is_a_thought_only_when_the_limit_ended_it() -> None:
    for pieces in cuts("hm, well"):
        assert parted(pieces, thinks=True, cut=True) == ("hm, well", "")
        assert parted(pieces, thinks=True) == ("", "hm, well")


def test_the_text_of_a_model_that_does_not_think_is_never_held_back() -> None:
    inline = ThinkTagParser(is_reasoning_model=False)
    assert [inline.feed(piece) for piece in ("a", "b</thi", "c")] == [
        [Text("a")],
        [Text("b</thi")],
        [Text("c")],
    ]


def test_thoughts_are_told_as_they_come() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    assert [inline.feed(piece) for piece in ("<think>a", "b", "</think>c")] == [
        [Reasoning("a")],
        [Reasoning("b")],
        [Text("c")],
    ]


def test_a_server_that_tells_thoughts_apart_by_itself_is_believed() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    assert inline.feed("a") == []
    inline.disable()
    assert inline.feed("</think>b") == [Text("a</think>b")]


def test_a_long_thought_that_is_held_back_takes_time_in_proportion_to_it() -> None:
    inline = ThinkTagParser(is_reasoning_model=True)
    for _ in range(50_000):
        assert inline.feed("hm ") == []
        assert len(inline._buffer) <= len("</thinking>")
    assert inline.feed("</think>yes") == [Reasoning("hm " * 50_000), Text("yes")]
