from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.message_normalization import normalize_messages
from peripety.gateway.request_checks import check_options, check_schema
from peripety.gateway.types.message import ChatMessage, ChatRole, Text
from peripety.gateway.types.request import CacheConfig, GenerateRequest, ResponseSchema

if TYPE_CHECKING:
    from pathlib import Path


USER, ASSISTANT, SYSTEM = ChatRole.USER, ChatRole.ASSISTANT, ChatRole.SYSTEM


def messages(*pairs: tuple[ChatRole, str]) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(role, (Text(text),)) for role, text in pairs)


def test_neighbours_of_one_role_become_one_message() -> None:
    given = messages((USER, "a"), (USER, "b"), (ASSISTANT, "c"), (ASSISTANT, "d"), (USER, "e"))
    assert normalize_messages(given) == messages((USER, "a\n\nb"), (ASSISTANT, "c\n\nd"), (USER, "e"))


def test_messages_that_alternate_stay_as_they_are() -> None:
    given = messages((USER, "a"), (ASSISTANT, "b"), (SYSTEM, "c"), (USER, "d"))
    assert normalize_messages(given) == given


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ((), "messages"),
        (messages((ASSISTANT, "a"), (USER, "b")), "messages[0].role"),
        (messages((SYSTEM, "a"), (USER, "b")), "messages[0].role"),
        (messages((USER, "a"), (ASSISTANT, "b")), "messages[1].role"),
        (messages((USER, "")), "messages[0].parts"),
    ],
)
def test_a_prompt_that_asks_nothing_is_refused(given: tuple[ChatMessage, ...], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        normalize_messages(given)
    assert [violation.field for violation in caught.value.violations] == [field]


def test_a_system_text_alone_gets_a_message_that_says_what_to_do() -> None:
    with pytest.raises(InvalidArgumentError, match="add a user message"):
        normalize_messages(())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**53}, "seed"),
        ({"stop_sequences": ("a",) * 17}, "stop_sequences"),
        ({"stop_sequences": ("a", "")}, "stop_sequences"),
        ({"model": "m" * 257}, "model"),
        ({"fallback_models": ("a", "")}, "fallback_models[1]"),
        ({"fallback_models": ("a" * 257,)}, "fallback_models[0]"),
        ({"cache": CacheConfig(expected_reuse=-1)}, "cache.expected_reuse"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_options(GenerateRequest(None, (), **options))
    assert [violation.field for violation in caught.value.violations] == [field]


def test_options_in_range_pass() -> None:
    options: dict[str, Any] = {
        "temperature": 0.0,
        "seed": 2**53 - 1,
        "stop_sequences": ("a",) * 16,
        "fallback_models": ("a",),
    }
    check_options(GenerateRequest(None, (), model="m" * 256, max_output_tokens=1, **options))


@pytest.mark.parametrize("name", ["", "a b", "a" * 65, "é"])
def test_a_schema_needs_a_name_that_providers_take(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"schema\.name"):
        check_schema(ResponseSchema(name, {}))


@pytest.mark.parametrize("document", [{"type": 5}, {"pattern": "("}, {"$ref": "#/nowhere"}])
def test_a_document_that_is_no_schema_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="not a valid JSON Schema"):
        check_schema(ResponseSchema("a", document))


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_schema_cannot_make_the_server_read_files(tmp_path: Path, keyword: str) -> None:
    (tmp_path / "secret.json").write_text('{"const": "secret"}')
    document = {"properties": {"a": {"items": [{keyword: (tmp_path / "secret.json").as_uri()}]}}}
    with pytest.raises(InvalidArgumentError, match="another document"):
        check_schema(ResponseSchema("a", document))


def test_a_property_may_be_called_like_a_reference() -> None:
    check_schema(
        ResponseSchema(
            "a",
            {"properties": {"$ref": {"type": "string"}}, "$defs": {"b": {}}, "items": {"$ref": "#/$defs/b"}},
        ),
    )
