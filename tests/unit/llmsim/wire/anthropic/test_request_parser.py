from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.determinism import make_signature
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    CacheBreakpoint,
    CacheSection,
    SimMessage,
    SimRole,
    SimTool,
    SimToolCall,
    SimToolResult,
)
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from support.llmsim.simulator import FakeService, call

if TYPE_CHECKING:
    from peripety.llmsim.types import SimRequest


OLD = {"anthropic-version": "2023-06-01"}
NEW = {"anthropic-version": "2026-10-21"}
WIRE = AnthropicWire()

HELLO: dict[str, Any] = {
    "model": "some-model",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}
TOOL: dict[str, Any] = {
    "name": "weather",
    "description": "Tells the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ASKED: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Rome"}},
    ],
}


def result(id_: str, content: Any = "sunny") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


def text(value: str, **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **members}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def read(headers: dict[str, str] = NEW, /, **members: Any) -> SimRequest:
    body = {**copy.deepcopy(HELLO), **members}
    return WIRE.parse_request(call(WIRE, body, headers), FakeService())


def refusal(headers: dict[str, str] = NEW, /, **members: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read(headers, **members)
    return caught.value


# ---- headers


def test_both_versions_of_the_api_are_served() -> None:
    assert read(OLD).model == read(NEW).model == "some-model"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "anthropic-version: header is required"),
        ({"anthropic-version": "2024-01-01"}, 'anthropic-version: "2024-01-01" is not a valid version'),
    ],
)
def test_a_version_has_to_be_named_that_there_is(headers: dict[str, str], message: str) -> None:
    error = refusal(headers)
    assert (error.kind, error.message) == (ApiErrorKind.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({}, ""),
        ({"x-api-key": "sk-1"}, "sk-1"),
        ({"authorization": "Bearer sk-2"}, "sk-2"),
        ({"authorization": "bearer sk-2"}, "sk-2"),
        ({"authorization": "Basic sk-2"}, ""),
        ({"x-api-key": "sk-1", "authorization": "Bearer sk-2"}, "sk-1"),
    ],
)
def test_the_key_comes_by_either_header(headers: dict[str, str], key: str) -> None:
    assert read({**NEW, **headers}).key == key


def test_the_conversation_is_named_by_its_header() -> None:
    assert read(NEW).conversation is None
    assert read({**NEW, "x-peripety-conversation": "a"}).conversation == "a"


# ---- what is read


def test_a_request_is_read_into_neutral_words() -> None:
    request = read(
        system=[text("Be brief."), text("Be kind.")],
        tools=[TOOL],
        messages=[
            {"role": "user", "content": "Weather?"},
            ASKED,
            user(result("toolu_1"), result("toolu_2", [text("rainy"), text("and cold")]), text("Well?")),
        ],
        stop_sequences=["STOP"],
        stream=True,
    )
    assert request.api is Api.ANTHROPIC
    assert request.system == "Be brief.\nBe kind."
    assert request.tools == (SimTool("weather", "Tells the weather.", TOOL["input_schema"]),)
    assert request.messages == (
        SimMessage(SimRole.USER, "Weather?"),
        SimMessage(
            SimRole.ASSISTANT,
            "Let me look.",
            (
                SimToolCall("weather", {"city": "Oslo"}, "toolu_1"),
                SimToolCall("weather", {"city": "Rome"}, "toolu_2"),
            ),
        ),
        SimMessage(
            SimRole.USER,
            "Well?",
            results=(SimToolResult("sunny", "toolu_1"), SimToolResult("rainy\nand cold", "toolu_2")),
        ),
    )
    assert (request.max_tokens, request.stop, request.stream) == (100, ("STOP",), True)


def test_messages_of_one_role_in_a_row_are_one_turn() -> None:
    request = read(
        messages=[
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "assistant", "content": "d"},
            {"role": "user", "content": "e"},
        ],
    )
    assert [(message.role, message.text) for message in request.messages] == [
        (SimRole.USER, "a\nb"),
        (SimRole.ASSISTANT, "c\nd"),
        (SimRole.USER, "e"),
    ]


def test_results_may_come_in_several_messages_of_one_turn() -> None:
    request = read(
        messages=[user(text("?")), ASKED, user(result("toolu_2")), user(result("toolu_1"), text("!"))],
    )
    assert [each.call_id for each in request.messages[2].results] == ["toolu_2", "toolu_1"]


def test_media_search_results_and_blocks_of_server_tools_are_accepted() -> None:
    request = read(
        messages=[
            user(
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "image", "source": {"type": "url", "url": "https://a.test/b.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a b"}},
                {"type": "document", "source": {"type": "content", "content": [text("c")]}, "title": "T"},
                {"type": "search_result", "source": "s", "title": "t", "content": [text("d")]},
                text("Look."),
            ),
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    text("Seen."),
                ],
            },
            user(text("And?")),
        ],
    )
    assert [message.text for message in request.messages] == ["Look.", "Seen.", "And?"]


def test_a_schema_for_the_answer_is_read() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    request = read(output_config={"effort": "low", "format": {"type": "json_schema", "schema": schema}})
    assert request.schema == schema
    assert read(output_config={"format": None}).schema is None


# ---- thinking


@pytest.mark.parametrize(
    ("model", "thinking", "on", "shown"),
    [
        ("some-model", None, False, True),
        ("some-model", {"type": "adaptive"}, True, True),
        ("some-model", {"type": "enabled", "budget_tokens": 1024}, True, True),
        ("some-model", {"type": "adaptive", "display": "omitted"}, True, False),
        ("claude-opus-5-5", None, True, False),
        ("claude-opus-5-5", {"type": "adaptive", "display": "summarized"}, True, True),
        ("claude-opus-5", None, True, False),
        ("claude-opus-5", {"type": "disabled"}, False, False),
        ("claude-sonnet-5-5", {"type": "between_tools"}, True, False),
        ("claude-opus-4-8", None, False, False),
        ("claude-sonnet-4-6", {"type": "adaptive"}, True, True),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 2000}, True, True),
    ],
)
def test_whether_thoughts_are_shown_depends_on_the_model_and_on_the_request(
    model: str,
    thinking: dict[str, Any] | None,
    on: bool,
    shown: bool,
) -> None:
    members = {} if thinking is None else {"thinking": thinking}
    request = read(model=model, max_tokens=4096, **members)
    assert (request.reasoning, request.options["shown"]) == (on, shown)


@pytest.mark.parametrize(
    ("model", "thinking", "message"),
    [
        (
            "claude-opus-5-5",
            {"type": "disabled"},
            (
                '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
                '"output_config.effort" to control thinking behavior.'
            ),
        ),
        (
            "claude-opus-4-7",
            {"type": "enabled", "budget_tokens": 1024},
            (
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
                '"output_config.effort" to control thinking behavior.'
            ),
        ),
        ("claude-haiku-4-5", {"type": "adaptive"}, "adaptive thinking is not supported on this model"),
        (
            "some-model",
            {"type": "enabled", "budget_tokens": 100},
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        (
            "some-model",
            {"type": "enabled", "budget_tokens": 4096},
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        ("some-model", {"type": "enabled"}, "thinking.enabled.budget_tokens: Field required"),
        (
            "some-model",
            {"type": "loud"},
            "thinking.type: Input should be 'adaptive', 'enabled', 'disabled' or 'between_tools'",
        ),
        (
            "some-model",
            {"type": "adaptive", "display": "all"},
            "thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
        ),
        (
            "some-model",
            {"type": "disabled", "budget_tokens": 1},
            "thinking.disabled.budget_tokens: Extra inputs are not permitted",
        ),
    ],
)
def test_ways_of_thinking_that_a_model_has_not_are_refused(
    model: str,
    thinking: dict[str, Any],
    message: str,
) -> None:
    assert refusal(model=model, max_tokens=4096, thinking=thinking).message == message


# ---- the prompt, as it is counted and cached


def test_the_prompt_is_tools_then_system_then_messages_with_their_markers() -> None:
    mark = {"type": "ephemeral"}
    hour = {"type": "ephemeral", "ttl": "1h"}
    request = read(
        tools=[{**TOOL, "cache_control": hour}],
        system=[text("Be brief.", cache_control=mark)],
        messages=[
            user(text("a")),
            user(text("b")),
            ASKED,
            user({**result("toolu_1"), "cache_control": mark}, result("toolu_2")),
        ],
    )
    blocks = request.prompt.blocks
    assert [(b.section, b.kind, b.message) for b in blocks] == [
        (CacheSection.TOOLS, "tool", -1),
        (CacheSection.SYSTEM, "text", -1),
        (CacheSection.MESSAGES, "text", 0),
        (CacheSection.MESSAGES, "text", 1),
        (CacheSection.MESSAGES, "text", 2),
        (CacheSection.MESSAGES, "tool_use", 2),
        (CacheSection.MESSAGES, "tool_use", 2),
        (CacheSection.MESSAGES, "tool_result", 3),
        (CacheSection.MESSAGES, "tool_result", 3),
    ]
    assert [b.marker for b in blocks] == [
        CacheBreakpoint("1h"),
        CacheBreakpoint("5m"),
        *[None] * 5,
        CacheBreakpoint("5m"),
        None,
    ]
    assert all(b"cache_control" not in b.content for b in blocks)
    assert blocks[1].tokens == 3
    assert request.prompt.tokens == sum(b.tokens for b in blocks)


def test_a_marker_and_the_form_of_a_text_do_not_change_a_block_and_its_speaker_does() -> None:
    def block(message: dict[str, Any]) -> bytes:
        return (
            read(messages=[{"role": "user", "content": "first"}, message, user(text("?"))])
            .prompt.blocks[1]
            .content
        )

    plain = block({"role": "user", "content": "a"})
    assert block(user(text("a"))) == plain
    assert block(user(text("a", cache_control={"type": "ephemeral"}))) == plain
    assert block(user(text("a", citations=None))) == plain
    assert block({"role": "assistant", "content": "a"}) != plain


def test_the_wish_to_cache_the_whole_marks_the_last_block_that_can_be_marked() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": make_signature("Hm.")}
    said = [user(text("a")), {"role": "assistant", "content": [text("b"), thought]}]
    blocks = read(cache_control={"type": "ephemeral", "ttl": "1h"}, messages=said).prompt.blocks
    assert [block.marker for block in blocks] == [None, CacheBreakpoint("1h", automatic=True), None]


def test_a_marker_of_the_callers_own_stands_where_the_whole_is_to_be_cached_for_as_long() -> None:
    said = [user(text("a", cache_control={"type": "ephemeral"}))]
    request = read(cache_control={"type": "ephemeral", "ttl": "5m"}, messages=said)
    assert [block.marker for block in request.prompt.blocks] == [CacheBreakpoint("5m")]
    error = refusal(cache_control={"type": "ephemeral", "ttl": "1h"}, messages=said)
    assert error.param == "cache_control"


@pytest.mark.parametrize(
    ("section", "members"),
    [
        (CacheSection.SYSTEM, {"speed": "fast"}),
        (
            CacheSection.SYSTEM,
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string"}}}},
        ),
        (CacheSection.MESSAGES, {"tools": [TOOL], "tool_choice": {"type": "any"}}),
        (CacheSection.MESSAGES, {"thinking": {"type": "adaptive"}}),
        (CacheSection.MESSAGES, {"output_config": {"effort": "low"}}),
        (
            CacheSection.MESSAGES,
            {"messages": [user({"type": "image", "source": {"type": "url", "url": "u"}})]},
        ),
        (
            CacheSection.MESSAGES,
            {
                "messages": [
                    user(text("?")),
                    ASKED,
                    user(
                        result("toolu_1", [{"type": "image", "source": {"type": "url", "url": "u"}}]),
                        result("toolu_2"),
                    ),
                ],
            },
        ),
    ],
)
def test_settings_that_break_what_is_cached_are_known_by_where_they_break_it(
    section: CacheSection,
    members: dict[str, Any],
) -> None:
    usual, changed = read().prompt.settings, read(**members).prompt.settings
    assert {each for each in usual if usual[each] != changed[each]} == {section}


@pytest.mark.parametrize(
    "members",
    [
        {"tools": [TOOL], "tool_choice": {"type": "auto"}},
        {"thinking": {"type": "disabled"}},
        {"output_config": {"effort": "high"}},
        {"speed": "standard"},
    ],
)
def test_saying_what_holds_anyway_changes_no_setting(members: dict[str, Any]) -> None:
    assert read(**members).prompt.settings == read().prompt.settings


def test_older_models_do_not_read_the_thoughts_before_the_last_plain_user_turn() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": make_signature("Hm.")}
    messages = [
        user(text("a")),
        {"role": "assistant", "content": [thought, text("b")]},
        user(text("c")),
        {
            "role": "assistant",
            "content": [thought, {"type": "tool_use", "id": "t", "name": "n", "input": {}}],
        },
        user(result("t")),
    ]

    def kinds(model: str) -> list[str]:
        return [block.kind for block in read(model=model, messages=messages).prompt.blocks]

    assert kinds("claude-opus-5-5").count("thinking") == 2
    assert kinds("claude-sonnet-4-5") == ["text", "text", "text", "thinking", "tool_use", "tool_result"]


def test_a_picture_counts_the_same_however_large_it_is() -> None:
    def tokens(data: str) -> int:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return read(messages=[user({"type": "image", "source": source})]).prompt.tokens

    assert tokens("aGk=") == tokens("aGk=" * 10_000) > 0


# ---- what is refused

IMAGE = {"type": "image", "source": {"type": "url", "url": "u"}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model: Input should be a valid string"),
    ({"max_tokens": "4"}, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
    (
        {"model": "claude-haiku-4-5", "max_tokens": 64_001},
        (
            "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens "
            "for claude-haiku-4-5"
        ),
    ),
    ({"system": None}, "system: Input should be a valid string or list"),
    (
        {"system": [IMAGE]},
        "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'",
    ),
    ({"system": [text("")]}, "system: text content blocks must be non-empty"),
    ({"stream": 1}, "stream: Input should be a valid boolean"),
    ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ({"stop_sequences": [" "]}, "stop_sequences: each stop sequence must contain non-whitespace"),
    ({"stop_sequences": [1]}, "stop_sequences.0: Input should be a valid string"),
    ({"metadata": {"name": "x"}}, "metadata.name: Extra inputs are not permitted"),
    ({"service_tier": "gold"}, "service_tier: Input should be 'auto' or 'standard_only'"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": "x"}, "messages: Input should be a valid list"),
    ({"messages": ["x"]}, "messages.0: Input should be a valid dictionary"),
    ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    ({"messages": [{"content": "x"}]}, "messages.0.role: Field required"),
    (
        {"messages": [{"role": "user", "content": "x", "name": "y"}]},
        "messages.0.name: Extra inputs are not permitted",
    ),
    (
        {"messages": [{"role": "tool", "content": "x"}]},
        'messages: Unexpected role "tool". Allowed roles are "user" or "assistant".',
    ),
    (
        {"messages": [{"role": "assistant", "content": "x"}]},
        'messages: first message must use the "user" role',
    ),
    (
        {"messages": [{"role": "user", "content": ""}]},
        (
            "messages.0: all messages must have non-empty content except for the optional "
            "final assistant message"
        ),
    ),
    (
        {"messages": [{"role": "user", "content": " \n"}]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    ({"messages": [user(text(""))]}, "messages: text content blocks must be non-empty"),
    ({"messages": [user(text("\t"))]}, "messages: text content blocks must contain non-whitespace text"),
    (
        {"messages": [user(text("", cache_control={"type": "ephemeral"}))]},
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    ({"messages": [user({"type": "text"})]}, "messages.0.content.0.text.text: Field required"),
    (
        {"messages": [user(text("x", bold=True))]},
        "messages.0.content.0.text.bold: Extra inputs are not permitted",
    ),
    (
        {
            "messages": [
                user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}}),
            ],
        },
        (
            "messages.0.content.0.image.source.base64.media_type: Input should be "
            "'image/jpeg', 'image/png', 'image/gif' or "
            "'image/webp'"
        ),
    ),
    (
        {"messages": [user({"type": "tool_use", "id": "a", "name": "b", "input": {}})]},
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    (
        {"messages": [user(text("a")), {"role": "assistant", "content": [result("x")]}]},
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    (
        {"messages": [user(text("x", cache_control={"type": "eternal"}))]},
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    (
        {"messages": [user(text("x", cache_control={"type": "ephemeral", "ttl": "2h"}))]},
        "messages.0.content.0.text.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    (
        {"cache_control": {"type": "ephemeral", "ttl": "2h"}},
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
    (
        {
            "messages": [
                user(text("a")),
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": "x",
                            "signature": make_signature("x"),
                            "cache_control": {"type": "ephemeral"},
                        },
                    ],
                },
            ],
        },
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    (
        {
            "messages": [
                user(text("a")),
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "x", "signature": "made up"}],
                },
            ],
        },
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        {
            "messages": [
                user(text("a")),
                ASKED,
                user(result("toolu_1", [text("x", cache_control={"type": "ephemeral"})]), result("toolu_2")),
            ],
        },
        "messages.2.content.0.tool_result.content.0.cache_control: Extra inputs are not permitted",
    ),
    (
        {"tools": [{"name": "a b", "input_schema": {"type": "object"}}]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
    ({"tools": [{"name": "a", "input_schema": {}}]}, "tools.0.custom.input_schema.type: Field required"),
    ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
    (
        {"tools": [{**TOOL, "strict": True}]},
        "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ),
    ({"tool_choice": {"type": "any"}}, "tool_choice may only be specified while providing tools"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "time"}},
        "tool_choice: Tool 'time' not found in provided tools",
    ),
    ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.tool.name: Field required"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "required"}},
        "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'",
    ),
    (
        {"tools": [TOOL], "tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}},
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    (
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "integer", "minimum": 1}}}},
        "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
    ),
    (
        {
            "output_config": {
                "format": {
                    "type": "json_schema",
                    "schema": {"type": "array", "items": {"anyOf": [{"type": "object"}]}},
                },
            },
        },
        (
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be "
            "explicitly set to false"
        ),
    ),
    (
        {"output_config": {"effort": "huge"}},
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    ),
]


@pytest.mark.parametrize(("members", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_what_is_not_valid_is_refused_in_the_providers_words(members: dict[str, Any], message: str) -> None:
    error = refusal(**members)
    assert (error.kind, error.message) == (ApiErrorKind.INVALID_REQUEST, message)


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_what_is_required_is_missed_by_its_name(name: str) -> None:
    body = {key: value for key, value in HELLO.items() if key != name}
    with pytest.raises(ApiError) as caught:
        WIRE.parse_request(call(WIRE, body, NEW), FakeService())
    assert (caught.value.message, caught.value.param) == (f"{name}: Field required", name)


def test_a_body_that_is_no_json_or_too_large_is_refused() -> None:
    with pytest.raises(ApiError, match="The request body is not valid JSON: EOF"):
        WIRE.parse_request(call(WIRE, b"{", NEW), FakeService())
    with pytest.raises(ApiError, match="Request exceeds the maximum size") as caught:
        WIRE.parse_request(call(WIRE, b" " * (32 * 1024 * 1024 + 1), NEW), FakeService())
    assert caught.value.kind is ApiErrorKind.TOO_LARGE


# ---- calls and results


def unanswered(*ids: str) -> str:
    return (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        f"block in the next message."
    )


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ([], unanswered("toolu_1", "toolu_2")),
        ([user(text("no"))], unanswered("toolu_1", "toolu_2")),
        ([user(result("toolu_1"))], unanswered("toolu_2")),
        ([user(text("first"), result("toolu_1"), result("toolu_2"))], unanswered("toolu_1", "toolu_2")),
        ([user(result("toolu_1"), text("between"), result("toolu_2"))], unanswered("toolu_2")),
        (
            [user(result("toolu_1"), result("toolu_2"), result("toolu_3"))],
            (
                "messages.2.content.2: unexpected `tool_use_id` found in `tool_result` blocks: "
                "toolu_3. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message."
            ),
        ),
        (
            [user(result("toolu_1"), result("toolu_1"), result("toolu_2"))],
            (
                "messages.2.content.1: each `tool_use` must have a single result. Found multiple "
                "`tool_result` blocks with "
                "id: toolu_1"
            ),
        ),
        (
            [user(result("toolu_1"), result("toolu_2")), ASKED, user(result("toolu_1"), result("toolu_2"))],
            "messages: `tool_use` ids must be unique",
        ),
    ],
)
def test_each_call_needs_its_one_result_first_thing_in_the_next_turn(
    after: list[dict[str, Any]],
    message: str,
) -> None:
    assert refusal(messages=[user(text("?")), ASKED, *after]).message == message


# ---- system messages


def test_newer_models_take_system_messages_after_a_users() -> None:
    request = read(
        model="claude-opus-5-5",
        messages=[user(text("a")), {"role": "system", "content": "Be brief."}],
    )
    assert [message.role for message in request.messages] == [SimRole.USER, SimRole.SYSTEM]


@pytest.mark.parametrize(
    ("model", "messages", "message"),
    [
        ("claude-sonnet-5", ["user", "system"], "role 'system' is not supported on this model"),
        ("claude-opus-5-5", ["system", "user"], 'messages: first message must use the "user" role'),
        (
            "claude-opus-5-5",
            ["user", "assistant", "system"],
            (
                "messages.2: role 'system' must follow a user message or an assistant message "
                "that ends in a server tool "
                "use"
            ),
        ),
        (
            "claude-opus-5-5",
            ["user", "system", "user"],
            "messages.1: role 'system' must be the last message or be followed by an assistant message",
        ),
        (
            "claude-opus-5-5",
            ["user", "system", "system"],
            (
                "messages.2: role 'system' must follow a user message or an assistant message "
                "that ends in a server tool "
                "use"
            ),
        ),
    ],
)
def test_system_messages_stand_where_they_may_or_are_refused(
    model: str,
    messages: list[str],
    message: str,
) -> None:
    error = refusal(model=model, messages=[{"role": role, "content": "x"} for role in messages])
    assert error.message == message


# ---- what depends on the model, and on the version


def test_the_newest_models_refuse_to_be_forced_to_call_or_to_continue() -> None:
    forced = refusal(model="claude-opus-5-5", tools=[TOOL], tool_choice={"type": "any"})
    assert forced.message == 'tool_choice: type "tool" and "any" are not supported for this model.'
    begun = [*HELLO["messages"], {"role": "assistant", "content": "{"}]
    prefilled = refusal(model="claude-opus-5-5", messages=begun)
    assert prefilled.message == (
        "This model does not support assistant message prefill. The conversation must "
        "end with a user message."
    )
    assert read(model="claude-haiku-4-5", messages=begun).messages[-1] == SimMessage(SimRole.ASSISTANT, "{")


def test_what_is_to_be_continued_does_not_end_in_a_space() -> None:
    error = refusal(messages=[*HELLO["messages"], {"role": "assistant", "content": "So "}])
    assert error.message == "messages: final assistant content cannot end with trailing whitespace"


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_the_newer_version_has_no_sampling_parameters(name: str) -> None:
    assert refusal(**{name: 1}).message == f"{name}: Extra inputs are not permitted"
    assert read(OLD, **{name: 1}).model == "some-model"


def test_newer_models_take_only_the_defaults_of_sampling_parameters() -> None:
    assert read(OLD, model="claude-opus-5", temperature=1, top_p=1).model == "claude-opus-5"
    error = refusal(OLD, model="claude-opus-5", temperature=0.5)
    assert error.message == "`temperature` is deprecated for this model."
    assert refusal(OLD, temperature=1.5).message == "temperature: range: 0..1"


def test_the_newer_version_has_no_documents_of_the_assistant_and_no_citations_of_the_user() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    said = [user(text("a")), {"role": "assistant", "content": [document]}, user(text("b"))]
    assert read(OLD, messages=said).messages[1].role is SimRole.ASSISTANT
    assert refusal(messages=said).message == "messages.1: `document` blocks can only be in `user` messages"
    cited = [user(text("a", citations=[{"type": "char_location"}]))]
    assert read(OLD, messages=cited).messages[0].text == "a"
    assert refusal(messages=cited).param == "messages[0].content[0].text.citations"
    assert read(messages=[user(text("a", citations=[]))]).messages[0].text == "a"


# ---- what is in beta


def test_what_is_in_beta_needs_its_header() -> None:
    members = {"context_management": {"edits": []}, "fallbacks": []}
    assert read({**NEW, "anthropic-beta": "context-management-2025-06-27"}, **members).model == "some-model"
    assert refusal(**members).message == "context_management: Extra inputs are not permitted"


def test_the_former_place_of_a_schema_is_told_from_the_present_one() -> None:
    error = refusal(output_format={"type": "json_schema", "schema": {"type": "string"}})
    assert error.message == "output_format: This field is deprecated. Use 'output_config.format' instead."


# ---- warming the cache


def test_no_tokens_at_all_may_be_asked_for() -> None:
    assert read(max_tokens=0).max_tokens == 0


@pytest.mark.parametrize(
    "members",
    [
        {"stream": True},
        {"tools": [TOOL], "tool_choice": {"type": "any"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string"}}}},
    ],
)
def test_what_needs_tokens_is_refused_without_any(members: dict[str, Any]) -> None:
    assert refusal(max_tokens=0, **members).message.startswith("max_tokens: 0 is not compatible with ")


# ---- the other operations


def test_tokens_are_counted_as_they_would_be_billed() -> None:
    body = {key: value for key, value in HELLO.items() if key != "max_tokens"}
    body["system"] = "Be brief."
    document = WIRE.handle_other(call(WIRE, body, NEW, name="count_tokens"), FakeService())
    assert json.loads(document.body) == {"input_tokens": read(system="Be brief.").prompt.tokens}
    with pytest.raises(ApiError, match="max_tokens: Extra inputs are not permitted"):
        WIRE.handle_other(call(WIRE, HELLO, NEW, name="count_tokens"), FakeService())


def models(**params: str) -> dict[str, Any]:
    document = WIRE.handle_other(call(WIRE, None, NEW, name="models", params=params), FakeService())
    value: dict[str, Any] = json.loads(document.body)
    return value


def test_models_are_listed_newest_first_a_page_at_a_time() -> None:
    whole = models(limit="1000")
    names = [model["id"] for model in whole["data"]]
    assert "claude-opus-5-5" in names
    assert not whole["has_more"]
    dates = [model["created_at"] for model in whole["data"]]
    assert dates == sorted(dates, reverse=True)
    first = models(limit="3")
    assert ([model["id"] for model in first["data"]], first["has_more"]) == (names[:3], True)
    assert (first["first_id"], first["last_id"]) == (names[0], names[2])
    assert [model["id"] for model in models(limit="3", after_id=names[2])["data"]] == names[3:6]
    assert [model["id"] for model in models(limit="2", before_id=names[3])["data"]] == names[1:3]


def test_a_page_has_to_be_asked_for_sensibly() -> None:
    for params, message in [
        ({"limit": "x"}, "limit: Input should be a valid integer"),
        ({"limit": "0"}, "limit: Input should be greater than or equal to 1"),
        ({"limit": "1001"}, "limit: Input should be less than or equal to 1000"),
        ({"after_id": "x"}, "after_id: unknown model: x"),
    ]:
        with pytest.raises(ApiError, match=message):
            models(**params)


def test_a_model_is_told_by_its_name() -> None:
    def model(name: str) -> dict[str, Any]:
        document = WIRE.handle_other(
            call(WIRE, None, NEW, name="model", params={"model_id": name}),
            FakeService(),
        )
        value: dict[str, Any] = json.loads(document.body)
        return value

    found = model("claude-opus-5-5")
    assert (found["display_name"], found["max_tokens"], found["type"]) == (
        "Claude Opus 5.5",
        128_000,
        "model",
    )
    with pytest.raises(ApiError, match="model: claude-nobody") as caught:
        model("claude-nobody")
    assert caught.value.kind is ApiErrorKind.NOT_FOUND
