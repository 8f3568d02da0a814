"""Prediction of prompt cache hits, and updates from the observed usage."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.gateway.prompt_cache.prediction import CachedPrefix, CachedPrefixes
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    Tool,
    ToolChoice,
    ToolChoiceMode,
)
from peripety.gateway.types.request import CacheConfig, CacheTTL, ResponseSchema
from peripety.gateway.types.response import CacheBlock, StopReason, Usage
from support.gateway.requests import Planning, assistant_message, cacheable_request, user_message

TOOL = Tool("t", "t" * 600, {"type": "object"})
LONG = "s" * 5_000


def predicted(planning: Planning, *messages: ChatMessage, **options: Any) -> tuple[int, int]:
    plan = planning.visit(cacheable_request(*messages, **options)).plan
    assert plan is not None
    return plan.predicted_read_tokens, plan.predicted_write_tokens


# ---- Anthropic


def test_what_was_written_is_read_and_only_the_rest_is_written() -> None:
    planning = Planning()
    assert predicted(planning, user_message()) == (0, 610)
    planning.ask(cacheable_request(user_message()))
    assert predicted(planning, user_message(), assistant_message(), user_message("v")) == (610, 20)


def test_a_question_that_is_asked_in_another_way_reads_the_history_before_it() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), assistant_message(), user_message("v")))
    assert predicted(planning, user_message(), assistant_message(), user_message("w")) == (620, 10)


def test_looking_changes_nothing() -> None:
    planning = Planning()
    planning.visit(cacheable_request(user_message()))
    assert predicted(planning, user_message()) == (0, 610)


def test_an_entry_can_be_read_from_the_first_event_on() -> None:
    planning = Planning()
    visit = planning.visit(cacheable_request(user_message()))
    assert predicted(planning, user_message()) == (0, 610)
    visit.on_first_event()
    assert predicted(planning, user_message()) == (610, 0)


def test_an_entry_lives_from_the_beginning_of_the_request_that_used_it_last() -> None:
    planning = Planning()
    first = planning.visit(cacheable_request(user_message()))
    planning.now = 100
    first.on_first_event()
    planning.now = 299
    planning.ask(cacheable_request(user_message()))
    planning.now = 598
    assert predicted(planning, user_message()) == (610, 0)
    planning.now = 599
    assert predicted(planning, user_message()) == (0, 610)


def test_an_entry_for_an_hour_lives_for_an_hour() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), cache=CacheConfig(ttl=CacheTTL.ONE_HOUR)))
    planning.now = 3_599
    assert predicted(planning, user_message()) == (610, 0)
    planning.now = 3_600
    assert predicted(planning, user_message()) == (0, 610)


def test_accounts_and_models_share_nothing() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    other = planning.visit(cacheable_request(user_message()), "two").plan
    assert other is not None
    assert other.predicted_read_tokens == 0
    assert predicted(planning, user_message(), model="anthropic/claude-fable-5-2") == (0, 610)


def test_the_choice_of_tools_breaks_the_messages_alone() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), tools=(TOOL,)))
    none = ToolChoice(ToolChoiceMode.NONE)
    assert predicted(planning, user_message(), tools=(TOOL,), tool_choice=none) == (1_201, 10)


def test_a_schema_breaks_the_system_text_and_the_messages() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), tools=(TOOL,)))
    schema = ResponseSchema("a", {"type": "object"})
    assert predicted(planning, user_message(), tools=(TOOL,), schema=schema) == (601, 610)


def test_what_was_not_found_is_not_expected_again() -> None:
    planning = Planning()
    history = (user_message(), assistant_message(), user_message("v"))
    planning.ask(cacheable_request(user_message()))
    planning.ask(cacheable_request(*history), read=0)
    assert predicted(planning, user_message()) == (0, 610)
    assert predicted(planning, *history) == (630, 0)


def test_what_was_found_of_it_is_expected_again() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    planning.ask(cacheable_request(user_message(), assistant_message(), user_message("v")), read=600)
    assert predicted(planning, user_message("w")) == (600, 10)


def test_a_provider_that_tells_no_usage_corrects_nothing() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    visit = planning.visit(cacheable_request(user_message()))
    visit.on_finished(AnswerFinished((Text("a"),), StopReason.END, Usage(), "m"))
    assert predicted(planning, user_message()) == (610, 0)


# ---- OpenAI from GPT-5.6 on


def test_openai_can_be_read_when_the_answer_has_ended_and_for_half_an_hour_from_then_on() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": LONG, "model": "openai/gpt-6.2-sol"}
    visit = planning.visit(cacheable_request(user_message(), **options))
    visit.on_first_event()
    assert predicted(planning, user_message(), **options) == (0, 5_010)
    planning.now = 100
    visit.on_finished(AnswerFinished((Text("a"),), StopReason.END, Usage(5_010, 1), "m"))
    assert predicted(planning, user_message(), **options) == (5_010, 0)
    assert predicted(planning, user_message(), assistant_message(), user_message(), **options) == (5_010, 20)
    assert predicted(planning, user_message("other"), **options) == (5_000, 10)
    planning.now = 1_899
    assert predicted(planning, user_message(), **options) == (5_010, 0)
    planning.now = 1_900
    assert predicted(planning, user_message(), **options) == (0, 5_010)


def test_openai_reads_a_schema_before_the_system_text() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": LONG, "model": "openai/gpt-6.2-sol"}
    planning.ask(cacheable_request(user_message(), **options))
    schema = ResponseSchema("a", {"type": "object"})
    assert predicted(planning, user_message(), schema=schema, **options) == (0, 5_011)


def test_the_two_apis_of_openai_share_nothing() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), system=LONG, model="openai/gpt-6.2-sol"))
    assert predicted(planning, user_message(), system=LONG, model="openai-responses/gpt-6.2-sol") == (
        0,
        5_010,
    )


def test_only_what_the_provider_itself_issued_is_sent_back() -> None:
    states = ProviderState("openai-responses", b"1234"), ProviderState("anthropic", b"1234567")
    said = ChatMessage(ChatRole.ASSISTANT, (*states, Reasoning("r"), Text("a" * 10)))
    history = user_message(), said, user_message("v")
    for model, written in (("anthropic/claude-opus-5-5", 637), ("openai-responses/gpt-6.2-sol", 5_034)):
        options = {"system": LONG[: 600 if written < 1_000 else 5_000], "model": model}
        assert predicted(Planning(), *history, **options) == (0, written)


# ---- those who cache by themselves


def test_older_models_of_openai_read_whole_steps_of_128_tokens_and_write_for_nothing() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": "s" * 1_200, "model": "openai/gpt-4.1"}
    assert predicted(planning, user_message(), **options) == (0, 0)
    planning.ask(cacheable_request(user_message(), **options))
    assert predicted(planning, user_message(), assistant_message(), user_message(), **options) == (1_152, 0)
    planning.now = 300
    assert predicted(planning, user_message(), **options) == (0, 0)


def test_older_models_of_openai_read_nothing_below_their_minimum() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": "s" * 1_000, "model": "openai/gpt-4.1"}
    planning.ask(cacheable_request(user_message(), **options))
    assert predicted(planning, user_message(), assistant_message(), user_message(), **options) == (0, 0)


def test_gemini_reads_what_prompts_have_in_common() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": LONG, "model": "gemini/gemini-3.8-flash"}
    planning.ask(cacheable_request(user_message(), **options))
    assert predicted(planning, user_message("other"), **options) == (5_000, 0)


def test_deepseek_reads_the_prompt_with_its_answer() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": "s" * 118, "model": "deepseek/deepseek-flash"}
    planning.ask(cacheable_request(user_message(), **options), said=(Text("a" * 64),))
    assert predicted(planning, user_message(), assistant_message(letters=64), user_message(), **options) == (
        192,
        0,
    )
    assert predicted(planning, user_message(), assistant_message("b", 64), user_message(), **options) == (
        128,
        0,
    )


def test_deepseek_still_has_what_was_read_in_whole_steps() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": "s" * 90, "model": "deepseek/deepseek-flash"}
    planning.ask(cacheable_request(user_message(), **options), said=(Text("a" * 85),))
    planning.ask(cacheable_request(user_message(), assistant_message(letters=85), user_message(), **options))
    assert predicted(
        planning, user_message(), assistant_message(letters=85), user_message("v"), **options
    ) == (128, 0)


def test_deepseek_reads_a_common_beginning_when_it_has_seen_prompts_part_there() -> None:
    planning = Planning()
    options: dict[str, Any] = {"system": "s" * 128, "model": "deepseek/deepseek-flash"}
    planning.ask(cacheable_request(user_message("a"), **options))
    assert predicted(planning, user_message("b"), **options) == (0, 0)
    planning.ask(cacheable_request(user_message("b"), **options))
    assert predicted(planning, user_message("c"), **options) == (128, 0)


# ---- differences


def difference(planning: Planning, *messages: ChatMessage, **options: Any) -> tuple[CacheBlock, int] | None:
    plan = planning.visit(cacheable_request(*messages, **options)).plan
    assert plan is not None
    found = plan.first_difference
    return None if found is None else (found.block, found.message_index)


@pytest.mark.parametrize("conversation_id", [None, "one"])
def test_a_conversation_that_only_grows_has_no_difference(conversation_id: str | None) -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), conversation_id=conversation_id))
    grown = (user_message(), assistant_message(), user_message("v"))
    assert difference(planning, *grown, conversation_id=conversation_id) is None
    planning.ask(cacheable_request(*grown, conversation_id=conversation_id))
    assert difference(planning, user_message(), conversation_id=conversation_id) is None


def test_the_first_message_that_differs_is_named() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), assistant_message(), user_message("v")))
    changed = (
        user_message(),
        assistant_message("b"),
        user_message("v"),
        assistant_message(),
        user_message("w"),
    )
    assert difference(planning, *changed) == (CacheBlock.MESSAGE, 1)


@pytest.mark.parametrize(
    ("options", "block"),
    [
        ({"system": "t" * 600}, CacheBlock.SYSTEM),
        ({"system": None}, CacheBlock.SYSTEM),
        ({"tools": ()}, CacheBlock.TOOLS),
        ({"tools": (TOOL, TOOL)}, CacheBlock.TOOLS),
        ({"model": "anthropic/claude-fable-5-2"}, CacheBlock.MODEL),
        ({"model": "openai/gpt-4.1"}, CacheBlock.MODEL),
    ],
)
def test_a_change_of_instructions_tools_or_model_is_named(options: dict[str, Any], block: CacheBlock) -> None:
    planning = Planning()
    common: dict[str, Any] = {"tools": (TOOL,), "conversation_id": "one"}
    planning.ask(cacheable_request(user_message(), **common))
    assert difference(
        planning, user_message(), assistant_message(), user_message(), **{**common, **options}
    ) == (block, 0)


def test_what_was_not_cached_may_differ() -> None:
    planning = Planning()
    short: dict[str, Any] = {"system": None, "conversation_id": "one"}
    planning.ask(cacheable_request(user_message(), **short))
    assert difference(planning, user_message("v"), assistant_message(), user_message(), **short) is None


def test_equal_questions_begin_conversations_of_their_own() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    assert difference(planning, user_message(), model="anthropic/claude-fable-5-2") is None


# ---- bounds


def test_the_entries_used_longest_ago_are_forgotten() -> None:
    entries = CachedPrefixes(lambda: 0.0, max_entries=2)
    for key in (b"a", b"b"):
        entries.add(CachedPrefix(key, 300), 0.0)
    assert entries.lifetime_of(b"a") == 300
    entries.add(CachedPrefix(b"c", 300), 0.0)
    assert [entries.lifetime_of(key) for key in (b"a", b"b", b"c")] == [300, None, 300]
