"""Conversion of a call to a Chat Completions request body.

Cache parameters for OpenAI.

Conversion of a conversation to Chat Completions messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError, Severity
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.openai.dialect import AZURE, DEEPSEEK, GENERIC, OPENAI
from peripety.gateway.providers.openai.request_body import cache_markers, to_messages, to_openai_body
from peripety.gateway.providers.openai.response_stream import ChatCompletionsWire
from peripety.gateway.providers.schema_dialect import ANSWER_TOOL
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
    CacheConfig,
    CacheTTL,
    GenerateRequest,
    ReasoningEffort,
    ResponseSchema,
)
from peripety.gateway.types.response import CacheBlock, CacheBreakpoint, SchemaMethod, SchemaReport
from support.gateway.requests import asking, call_of

if TYPE_CHECKING:
    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.provider import ProviderCall


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPTIONAL = {**CLOSED, "required": []}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}
TOOL = Tool("gauge", "Reads.", CLOSED)
DIALECTS = {"openai": OPENAI, "azure": AZURE, "deepseek": DEEPSEEK, "generic": GENERIC}


def body(provider: str, model: str, **options: Any) -> dict[str, Any]:
    return dict(to_openai_body(call_of(asking(**options), model, provider), DIALECTS[provider]).document)


def refused(call: ProviderCall, dialect: Dialect) -> tuple[str, str]:
    with pytest.raises(InvalidArgumentError) as caught:
        to_openai_body(call, dialect)
    (violation,) = caught.value.violations
    assert f"{call.data.provider}/{call.model}" in caught.value.message
    return violation.field, violation.reason


def test_what_is_left_open_is_left_to_a_server_that_nothing_is_known_of() -> None:
    assert body("generic", "m") == {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_a_system_text_there_is_no_system_message() -> None:
    call = call_of(GenerateRequest(None, (ChatMessage.user("u"),)))
    assert to_openai_body(call, GENERIC).document["messages"] == [{"role": "user", "content": "u"}]


@pytest.mark.parametrize(
    ("provider", "model", "field", "limit"),
    [
        ("openai", "gpt-5.2", "max_completion_tokens", 32_000),
        ("openai", "gpt-4.1", "max_completion_tokens", 8_192),
        ("deepseek", "deepseek-flash", "max_tokens", 32_000),
    ],
)
def test_the_length_is_limited_in_the_field_of_the_model(
    provider: str,
    model: str,
    field: str,
    limit: int,
) -> None:
    assert body(provider, model)[field] == limit
    assert body(provider, model, max_output_tokens=7)[field] == 7


@pytest.mark.parametrize(("provider", "model"), [("azure", "d"), ("generic", "m"), ("openai", "new")])
def test_the_length_is_left_open_where_nobody_knows_how_much_the_model_takes(
    provider: str,
    model: str,
) -> None:
    assert not {"max_tokens", "max_completion_tokens"} & body(provider, model).keys()


def test_a_model_of_ones_own_is_limited_as_its_card_says() -> None:
    call = call_of(asking())
    call = replace(call, data=replace(call.data, name="mine", default_output_tokens=4_096))
    assert to_openai_body(call, GENERIC).document["max_tokens"] == 4_096


def test_options_that_a_model_takes_go_along_and_others_are_dropped() -> None:
    options = {"temperature": 0.0, "seed": 0}
    assert options.items() <= body("generic", "m", **options).items()
    assert options.items() <= body("openai", "gpt-4.1", **options).items()
    assert not options.keys() & body("openai", "gpt-5.2", **options).keys()
    assert body("deepseek", "deepseek-flash", **options)["temperature"] == 0.0


def test_texts_that_end_an_answer_go_along_as_far_as_the_server_takes_them() -> None:
    stops = ("a", "b", "c", "d", "e")
    assert body("openai", "gpt-4.1", stop_sequences=stops[:4])["stop"] == ["a", "b", "c", "d"]
    assert body("deepseek", "deepseek-flash", stop_sequences=stops)["stop"] == [*stops]
    field, reason = refused(call_of(asking(stop_sequences=stops), "gpt-4.1", "openai"), OPENAI)
    assert (field, "at most 4" in reason) == ("stop_sequences", True)


def test_tools_are_functions_under_names_that_every_server_takes() -> None:
    told = body("generic", "m", tools=(TOOL, Tool("a.b", "Is.", OPEN)))["tools"]
    assert told[0] == {
        "type": "function",
        "function": {"name": "gauge", "description": "Reads.", "parameters": CLOSED},
    }
    assert told[1]["function"]["name"].startswith("t_a_b_")


def test_a_strict_tool_is_held_to_its_schema_unless_it_lets_keys_be_left_out() -> None:
    tools = (replace(TOOL, strict=True), Tool("other", "", OPTIONAL, strict=True), TOOL)
    told = [tool["function"] for tool in body("openai", "gpt-4.1", tools=tools)["tools"]]
    assert [function["strict"] for function in told] == [True, False, False]
    assert told[1]["parameters"] == OPTIONAL


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ToolChoice(), "auto"),
        (ToolChoice(ToolChoiceMode.NONE), "none"),
        (ToolChoice(ToolChoiceMode.ANY), "required"),
        (
            ToolChoice(ToolChoiceMode.NAMED, "gauge"),
            {"type": "function", "function": {"name": "gauge"}},
        ),
    ],
)
def test_the_choice_among_tools_is_told(choice: ToolChoice, told: Any) -> None:
    written = body("openai", "gpt-4.1", tools=(TOOL,), tool_choice=choice)
    assert written["tool_choice"] == told
    assert "parallel_tool_calls" not in written


def test_a_choice_without_tools_is_not_told() -> None:
    assert "tool_choice" not in body("openai", "gpt-4.1", tool_choice=ToolChoice(ToolChoiceMode.NONE))


def test_one_call_at_a_time_is_told_where_it_can_be() -> None:
    choice = ToolChoice(disable_parallel=True)
    assert body("openai", "gpt-4.1", tools=(TOOL,), tool_choice=choice)["parallel_tool_calls"] is False
    call = call_of(asking(tools=(TOOL,), tool_choice=choice), "deepseek-flash", "deepseek")
    assert refused(call, DEEPSEEK)[0] == "tool_choice.disable_parallel"


def test_a_model_that_calls_no_tools_while_it_reasons_is_told_not_to_reason() -> None:
    assert body("openai", "gpt-5.4", tools=(TOOL,))["reasoning_effort"] == "none"
    assert "reasoning_effort" not in body("openai", "gpt-5.4")
    assert "reasoning_effort" not in body("openai", "gpt-5.2", tools=(TOOL,))


def test_the_effort_is_sent_where_the_card_knows_it() -> None:
    low = {"reasoning_effort": ReasoningEffort.LOW}
    assert body("openai", "gpt-5.2", **low)["reasoning_effort"] == "low"
    assert body("openai", "gpt-5.4", tools=(TOOL,), **low)["reasoning_effort"] == "none"
    for provider, model in (("openai", "gpt-4.1"), ("openai", "unheard-of"), ("generic", "m")):
        assert "reasoning_effort" not in body(provider, model, **low)


def test_reasoning_is_never_turned_off_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    body("openai", "gpt-5.4", tools=(TOOL,))
    (record,) = caplog.records
    assert (record.levelname, vars(record)["model"]) == ("WARNING", "openai/gpt-5.4")


def test_a_model_that_cannot_but_reason_is_not_offered_tools_here() -> None:
    field, reason = refused(call_of(asking(tools=(TOOL,)), "gpt-6.2-sol", "openai"), OPENAI)
    assert (field, "openai-responses/gpt-6.2-sol" in reason) == ("tools", True)


@pytest.mark.parametrize("mode", [ToolChoiceMode.ANY, ToolChoiceMode.NAMED])
def test_a_demanded_tool_turns_thinking_off_where_it_is_refused_otherwise(mode: ToolChoiceMode) -> None:
    choice = ToolChoice(mode, "gauge" if mode is ToolChoiceMode.NAMED else None)
    forced = body("deepseek", "deepseek-flash", tools=(TOOL,), tool_choice=choice)
    assert forced["thinking"] == {"type": "disabled"}
    assert "thinking" not in body("deepseek", "deepseek-flash", tools=(TOOL,), tool_choice=ToolChoice())


def test_a_tool_cannot_be_demanded_of_a_model_that_takes_no_demands() -> None:
    call = call_of(asking(tools=(TOOL,), tool_choice=ToolChoice(ToolChoiceMode.ANY)))
    traits = replace(call.data.traits, forced_tool_choice=False)
    call = replace(call, data=replace(call.data, traits=traits))
    assert refused(call, GENERIC)[0] == "tool_choice.mode"


def asked(document: dict[str, Any], provider: str, model: str) -> tuple[dict[str, Any], SchemaReport]:
    call = call_of(asking(schema=ResponseSchema("a", document)), model, provider)
    written = to_openai_body(call, DIALECTS[provider])
    assert written.schema_report is not None
    response_format = written.document["response_format"]
    assert response_format["type"] == "json_schema"
    return response_format["json_schema"], written.schema_report


@pytest.mark.parametrize(
    ("provider", "method"),
    [("openai", SchemaMethod.NATIVE), ("generic", SchemaMethod.GRAMMAR)],
)
def test_a_schema_that_strict_mode_takes_goes_along_as_it_is(provider: str, method: SchemaMethod) -> None:
    told, report = asked(CLOSED, provider, "m")
    assert told == {"name": "a", "schema": CLOSED, "strict": True}
    assert report == SchemaReport(method)


def test_a_schema_is_brought_into_the_form_of_strict_mode_and_what_is_lost_is_reported() -> None:
    bounded = {**CLOSED, "properties": {"a": {"type": "integer", "maxLength": 3}}}
    told, report = asked(bounded, "openai", "gpt-5.2")
    assert told == {"name": "a", "schema": CLOSED, "strict": True}
    assert [(finding.path, finding.severity) for finding in report.dropped] == [
        ("/properties/a/maxLength", Severity.WARNING),
    ]


def test_a_schema_that_strict_mode_cannot_express_goes_along_without_it() -> None:
    told, report = asked(OPEN, "azure", "d")
    assert told == {"name": "a", "schema": OPEN, "strict": False}
    assert [finding.code for finding in report.dropped] == ["NOT_STRICT"]


@pytest.mark.parametrize("document", [OPTIONAL, OPEN, {**CLOSED, "minProperties": 1}])
def test_other_servers_are_told_the_schema_as_it_is(document: dict[str, Any]) -> None:
    told, report = asked(document, "generic", "m")
    assert told["schema"] == document
    assert report.dropped == ()


def able(call: ProviderCall, *capabilities: Capability) -> ProviderCall:
    """The call of a model that can do this and nothing else."""
    return replace(call, data=replace(call.data, capabilities=frozenset(capabilities)))


SCHEMA = ResponseSchema("a", CLOSED)


def test_a_model_without_structured_output_answers_by_calling_a_tool() -> None:
    written = to_openai_body(able(call_of(asking(schema=SCHEMA)), Capability.TOOLS), GENERIC)
    assert written.document["tool_choice"]["function"]["name"] == ANSWER_TOOL
    assert written.document["tools"][0]["function"]["parameters"] == CLOSED
    assert "response_format" not in written.document
    assert written.schema_report == SchemaReport(SchemaMethod.TOOL)


def test_a_server_with_nothing_but_grammars_is_told_the_schema_in_its_own_field() -> None:
    written = to_openai_body(able(call_of(asking(schema=SCHEMA)), Capability.GRAMMAR), GENERIC)
    assert written.document["structured_outputs"] == {"json": CLOSED}
    assert written.schema_report == SchemaReport(SchemaMethod.GRAMMAR)


def test_deepseek_is_held_to_json_and_told_the_schema_at_the_end_of_the_prompt() -> None:
    call = call_of(asking(schema=SCHEMA), "deepseek-flash", "deepseek")
    written = to_openai_body(call, DEEPSEEK)
    plain = to_openai_body(call_of(asking(), "deepseek-flash", "deepseek"), DEEPSEEK)
    assert written.document["response_format"] == {"type": "json_object"}
    assert written.document["messages"][:-1] == plain.document["messages"][:-1]
    hinted = written.document["messages"][-1]["content"]
    assert hinted.startswith("u\n\n")
    assert "JSON" in hinted
    assert written.schema_report == SchemaReport(SchemaMethod.EXTRACTION)


def test_an_answer_that_is_no_object_is_not_held_to_be_one() -> None:
    listed = ResponseSchema("a", {"type": "array", "items": {"type": "integer"}})
    written = to_openai_body(call_of(asking(schema=listed), "deepseek-flash", "deepseek"), DEEPSEEK)
    assert "response_format" not in written.document


def test_azure_has_one_path_for_all_deployments_and_one_for_each_when_a_version_is_wanted() -> None:
    wire, call = ChatCompletionsWire(AZURE), call_of(asking(), "my model", "azure")
    assert wire.path(call) == "/openai/v1/chat/completions"
    traits = replace(call.data.traits, api_version="2025-04-01-preview")
    call = replace(call, data=replace(call.data, traits=traits))
    path = "/openai/deployments/my%20model/chat/completions?api-version=2025-04-01-preview"
    assert wire.path(call) == path
    assert ChatCompletionsWire(OPENAI).path(call) == "/chat/completions"


MARK = {"mode": "explicit"}
HISTORY = (ChatMessage.user("u"), ChatMessage.assistant("a"), ChatMessage.user("v"))
BREAKPOINTS = (
    CacheBreakpoint(CacheBlock.TOOLS, CacheTTL.FIVE_MINUTES),
    CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.FIVE_MINUTES),
    CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 0),
    CacheBreakpoint(CacheBlock.MESSAGE, CacheTTL.FIVE_MINUTES, 2),
)


def told(model: str = "gpt-5.2", system: str = "s", **options: Any) -> dict[str, Any]:
    request = GenerateRequest(system, HISTORY, **options)
    return dict(to_openai_body(call_of(request, model, "openai", BREAKPOINTS), OPENAI).document)


def test_requests_with_the_same_instructions_and_tools_have_one_key() -> None:
    key = told()["prompt_cache_key"]
    assert len(key) <= 64
    assert told(temperature=1.0, max_output_tokens=5)["prompt_cache_key"] == key
    tool = Tool("gauge", "Reads.", {"type": "object"})
    others = [told(system="t"), told(tools=(tool,)), told(conversation_id="c"), told(conversation_id="d")]
    assert len({key, *(other["prompt_cache_key"] for other in others)}) == 5


def test_a_conversation_has_its_own_key_which_does_not_tell_its_name() -> None:
    key = told(conversation_id="conversations/x")["prompt_cache_key"]
    assert told(system="t", conversation_id="conversations/x")["prompt_cache_key"] == key
    assert "x" not in key


@pytest.mark.parametrize(
    ("model", "options"),
    [("gpt-5.2", None), ("gpt-6-sol", {"mode": "explicit"}), ("gpt-4.1", None)],
)
def test_a_cache_that_is_not_wanted_is_not_written(model: str, options: dict[str, str] | None) -> None:
    body = told(model, cache=CacheConfig(enabled=False))
    assert body.get("prompt_cache_options") == options
    assert "prompt_cache_key" not in body
    assert "prompt_cache_breakpoint" not in str(body)


def test_breakpoints_stand_on_the_last_text_of_what_they_are_behind() -> None:
    system, first, answer, last = told("gpt-6-sol")["messages"]
    assert system["content"] == [{"type": "text", "text": "s", "prompt_cache_breakpoint": MARK}]
    assert first["content"] == [{"type": "text", "text": "u", "prompt_cache_breakpoint": MARK}]
    assert answer["content"] == [{"type": "text", "text": "a"}]
    assert last["content"] == [{"type": "text", "text": "v"}], "the provider sets this one by itself"


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-4.1", "new"])
def test_models_that_cache_by_themselves_are_given_no_breakpoints(model: str) -> None:
    assert "prompt_cache_breakpoint" not in str(told(model))


def test_no_longer_life_is_asked_for_than_the_breakpoint_of_the_provider_has() -> None:
    point = CacheBreakpoint(CacheBlock.SYSTEM, CacheTTL.ONE_HOUR)
    call = call_of(asking(), "gpt-6-sol", "openai", (point,))
    assert cache_markers(call).system == {"prompt_cache_breakpoint": MARK}


def test_other_servers_are_told_nothing_that_they_would_not_know() -> None:
    for provider, dialect in (("generic", GENERIC), ("deepseek", DEEPSEEK)):
        assert "cache" not in str(to_openai_body(call_of(asking(), "m", provider), dialect).document)
    azure = to_openai_body(call_of(asking(), "d", "azure"), AZURE).document
    assert "prompt_cache_key" in azure


CALLING = ChatMessage(
    ChatRole.ASSISTANT,
    (
        Reasoning("hm"),
        ProviderState("deepseek", b"hm"),
        Text("I look."),
        ToolCall("c-1", "gauge", '{"a": 1}'),
        ToolCall("c-2", "a.b", "{}"),
    ),
)
RESULTS = ChatMessage(
    ChatRole.USER,
    (ToolResult("c-1", "7"), ToolResult("c-2", "none left", is_error=True), Text("And now?")),
)


def written(*messages: ChatMessage, provider: str = "openai", model: str = "gpt-5.2") -> list[dict[str, Any]]:
    return to_messages(call_of(GenerateRequest("s", messages), model, provider))


def test_the_results_of_tools_follow_their_calls_as_messages_of_their_own() -> None:
    _, _, called, first, second, after = written(ChatMessage.user("u"), CALLING, RESULTS)
    assert [call["id"] for call in called["tool_calls"]] == ["c-1", "c-2"]
    assert called["tool_calls"][0]["function"] == {"name": "gauge", "arguments": '{"a": 1}'}
    assert called["tool_calls"][1]["function"]["name"].startswith("t_a_b_")
    assert called["content"] == "I look."
    assert first == {"role": "tool", "tool_call_id": "c-1", "content": "7"}
    assert second == {"role": "tool", "tool_call_id": "c-2", "content": "Error: none left"}
    assert after == {"role": "user", "content": "And now?"}


def test_instructions_have_the_role_that_the_model_knows_also_in_the_middle() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.system("x"), ChatMessage.user("v"))
    roles = {
        model: [message["role"] for message in written(*messages, model=model)]
        for model in ("gpt-5.2", "gpt-4.1")
    }
    assert roles["gpt-5.2"] == ["developer", "user", "developer", "user"]
    assert roles["gpt-4.1"] == ["system", "user", "system", "user"]


def test_instructions_in_the_middle_are_told_by_the_user_where_the_model_takes_no_others() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.system("x"), ChatMessage.user("v"))
    call = call_of(GenerateRequest("s", messages))
    traits = replace(call.data.traits, system_messages=False)
    call = replace(call, data=replace(call.data, traits=traits))
    assert to_messages(call)[2] == {"role": "user", "content": "<system>\nx\n</system>"}


def test_an_answer_that_says_nothing_is_no_message() -> None:
    thought = ChatMessage(ChatRole.ASSISTANT, (Reasoning("hm"),))
    assert len(written(ChatMessage.user("u"), thought, ChatMessage.user("v"))) == 3


@pytest.mark.parametrize("call_id", ["x" * 41, "functions.gauge:0", "\u00e9"])
def test_ids_that_another_provider_gave_are_made_to_fit(call_id: str) -> None:
    called = ChatMessage(ChatRole.ASSISTANT, (ToolCall(call_id, "gauge", "{}"),))
    result = ChatMessage(ChatRole.USER, (ToolResult(call_id, "7"),))
    _, _, call, told = written(ChatMessage.user("u"), called, result)
    assert call["tool_calls"][0]["id"] == told["tool_call_id"]
    assert len(told["tool_call_id"]) <= 40
    assert told["tool_call_id"] != call_id


def test_deepseek_is_told_again_what_it_thought() -> None:
    _, _, called, *_ = written(ChatMessage.user("u"), CALLING, RESULTS, provider="deepseek", model="m")
    assert called["reasoning_content"] == "hm"


def test_nobody_else_is_told_what_deepseek_thought() -> None:
    for provider in ("openai", "generic", "azure"):
        assert "hm" not in str(written(ChatMessage.user("u"), CALLING, RESULTS, provider=provider))


def test_calls_that_another_model_made_are_given_a_thought_for_deepseek() -> None:
    foreign = replace(CALLING, parts=CALLING.parts[2:])
    _, _, called, *_ = written(ChatMessage.user("u"), foreign, RESULTS, provider="deepseek", model="m")
    assert called["reasoning_content"] == "Tools to call now: gauge, a.b"


def test_a_plain_answer_of_another_model_needs_no_thought() -> None:
    messages = (ChatMessage.user("u"), ChatMessage.assistant("a"), ChatMessage.user("v"))
    assert "reasoning_content" not in str(written(*messages, provider="deepseek", model="m"))


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-5.2"), ("openai", "gpt-6-sol"), ("deepseek", "m"), ("generic", "m")],
)
def test_what_was_written_of_a_history_stays_the_same_as_it_grows(provider: str, model: str) -> None:
    history = [
        ChatMessage.user("u"),
        CALLING,
        RESULTS,
        ChatMessage.assistant("a"),
        ChatMessage.system("x"),
        ChatMessage.user("v"),
    ]
    before: list[dict[str, Any]] = []
    for length in (1, 3, 6):
        now = written(*normalize_messages(history[:length]), provider=provider, model=model)
        assert now[: len(before)] == before
        before = now
