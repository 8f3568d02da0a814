"""Placement of cache markers."""

from __future__ import annotations

import pytest

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
from peripety.gateway.types.request import CacheConfig, CacheTTL
from support.gateway.requests import Planning, assistant_message, cacheable_request, places, user_message

TOOL = Tool("t", "t" * 600, {"type": "object"})


def called(number: int, *, thought: bool = False) -> tuple[ChatMessage, ChatMessage]:
    """A call of a tool, with its result."""
    call_id = f"c{number}"
    state = (ProviderState("anthropic", b"opaque"),) if thought else ()
    return (
        ChatMessage(ChatRole.ASSISTANT, (*state, ToolCall(call_id, "t", "{}"))),
        ChatMessage(ChatRole.USER, (ToolResult(call_id, "r"),)),
    )


def test_markers_stand_behind_tools_and_system_the_message_before_the_newest_and_the_newest() -> None:
    visit = Planning().visit(
        cacheable_request(user_message(), assistant_message(), user_message("v"), tools=(TOOL,))
    )
    assert places(visit) == ["tools", "system", "1", "2"]
    assert {each.ttl for each in visit.call.breakpoints} == {CacheTTL.FIVE_MINUTES}


def test_all_markers_have_the_lifetime_that_is_asked_for() -> None:
    request = cacheable_request(user_message(), cache=CacheConfig(ttl=CacheTTL.ONE_HOUR))
    assert [each.ttl for each in Planning().visit(request).call.breakpoints] == [CacheTTL.ONE_HOUR] * 2


def test_a_prefix_below_the_minimum_gets_no_marker() -> None:
    planning = Planning()
    assert places(planning.visit(cacheable_request(user_message(), system="s" * 400))) == []
    assert places(planning.visit(cacheable_request(user_message(letters=112), system="s" * 400))) == ["0"]
    assert places(planning.visit(cacheable_request(user_message(letters=111), system="s" * 400))) == []
    model = "anthropic/claude-haiku-4-5"
    assert places(planning.visit(cacheable_request(user_message(letters=4_000), model=model))) == ["0"]


def test_a_message_of_nothing_but_thoughts_gets_no_marker() -> None:
    thoughts = ChatMessage(ChatRole.ASSISTANT, (Reasoning("r"), ProviderState("anthropic", b"opaque")))
    visit = Planning().visit(cacheable_request(user_message(), thoughts, user_message("v")))
    assert places(visit) == ["system", "0", "2"]


def test_an_empty_system_text_gets_no_marker() -> None:
    assert places(Planning().visit(cacheable_request(user_message(letters=600), system=None))) == ["0"]


@pytest.mark.parametrize(("turns", "step"), [(7, []), (9, ["15"]), (20, ["15"])])
def test_a_marker_bridges_what_was_appended_when_it_is_more_than_the_newest_looks_back_over(
    turns: int,
    step: list[str],
) -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    appended = [message for number in range(turns) for message in called(number)]
    visit = planning.visit(cacheable_request(user_message(), *appended))
    newest = 2 * turns
    assert places(visit) == ["system", *step, str(newest - 1), str(newest)]
    assert visit.plan is not None
    assert visit.plan.predicted_read_tokens == 610


def test_the_bridge_takes_the_place_of_the_tools() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(), tools=(TOOL,)))
    appended = [message for number in range(20) for message in called(number)]
    visit = planning.visit(cacheable_request(user_message(), *appended, tools=(TOOL,)))
    assert places(visit) == ["system", "15", "39", "40"]


def test_markers_that_are_left_bridge_on() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message(letters=600), system=None))
    appended = [message for number in range(30) for message in called(number)]
    visit = planning.visit(cacheable_request(user_message(letters=600), *appended, system=None))
    assert places(visit) == ["15", "30", "59", "60"]


def test_a_message_that_is_longer_than_a_marker_looks_back_over_is_bridged_from_before_it() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    parts = [part for number in range(15) for part in (Text("a"), ToolCall(f"c{number}", "t", "{}"))]
    results = tuple(ToolResult(f"c{number}", "r") for number in range(15))
    visit = planning.visit(
        cacheable_request(
            user_message(), ChatMessage(ChatRole.ASSISTANT, tuple(parts)), ChatMessage(ChatRole.USER, results)
        ),
    )
    assert places(visit) == ["system", "0", "1", "2"]
    assert visit.plan is not None
    assert visit.plan.predicted_read_tokens == 610


def test_calls_and_results_in_a_row_are_one_position() -> None:
    planning = Planning()
    planning.ask(cacheable_request(user_message()))
    calls = tuple(ToolCall(f"c{number}", "t", "{}") for number in range(30))
    results = tuple(ToolResult(f"c{number}", "r") for number in range(30))
    visit = planning.visit(
        cacheable_request(
            user_message(), ChatMessage(ChatRole.ASSISTANT, calls), ChatMessage(ChatRole.USER, results)
        ),
    )
    assert places(visit) == ["system", "1", "2"]


@pytest.mark.parametrize(
    ("reuse", "ttl", "markers"),
    [
        (0, CacheTTL.FIVE_MINUTES, 2),
        (1, CacheTTL.FIVE_MINUTES, 2),
        (0, CacheTTL.ONE_HOUR, 2),
        (1, CacheTTL.ONE_HOUR, 0),
        (2, CacheTTL.ONE_HOUR, 2),
    ],
)
def test_nothing_is_marked_when_that_will_cost_more_than_it_saves(
    reuse: int,
    ttl: CacheTTL,
    markers: int,
) -> None:
    visit = Planning().visit(
        cacheable_request(
            user_message(), cache=CacheConfig(ttl=ttl, expected_reuse=reuse), model="anthropic/claude-opus-5"
        ),
    )
    assert len(visit.call.breakpoints) == markers
    assert visit.plan is not None
    assert (visit.plan.predicted_write_tokens > 0) == (markers > 0)


def test_what_is_cached_already_is_worth_reading() -> None:
    planning = Planning()
    hour = CacheConfig(ttl=CacheTTL.ONE_HOUR, expected_reuse=1)
    planning.ask(cacheable_request(user_message(), cache=CacheConfig(ttl=CacheTTL.ONE_HOUR)))
    assert places(
        planning.visit(cacheable_request(user_message(), assistant_message(), user_message(), cache=hour))
    ) == ["system", "1", "2"]


def test_without_the_cache_there_is_neither_marker_nor_plan() -> None:
    visit = Planning().visit(cacheable_request(user_message(), cache=CacheConfig(enabled=False)))
    assert (visit.plan, visit.call.breakpoints) == (None, ())


@pytest.mark.parametrize("model", ["generic/m", "ollama/m"])
def test_where_nothing_is_known_of_a_cache_nothing_is_planned(model: str) -> None:
    visit = Planning().visit(cacheable_request(user_message(), model=model))
    assert (visit.plan, visit.call.breakpoints) == (None, ())


def test_openai_marks_the_newest_message_by_itself() -> None:
    model = "openai/gpt-6.2-sol"
    visit = Planning().visit(
        cacheable_request(
            user_message(),
            assistant_message(),
            user_message(),
            system="s" * 1_100,
            tools=(TOOL,),
            model=model,
        ),
    )
    assert places(visit) == ["system", "1"]


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "deepseek/deepseek-flash", "gemini/gemini-2.5-pro"])
def test_who_caches_by_himself_is_given_no_marker(model: str) -> None:
    visit = Planning().visit(cacheable_request(user_message(), system="s" * 5_000, model=model))
    assert visit.call.breakpoints == ()
    assert visit.plan is not None


def test_instructions_between_messages_come_last_in_their_turn() -> None:
    instructions = ChatMessage.system("i" * 10)
    visit = Planning().visit(
        cacheable_request(user_message(), assistant_message(), instructions, user_message("v"))
    )
    assert places(visit) == ["system", "3", "2"]
