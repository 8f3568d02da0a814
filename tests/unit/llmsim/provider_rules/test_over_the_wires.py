"""Caches, limits and usage as clients see them: conversations in the format of each API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.script.types import RateLimit, Script, ScriptResponse
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.base import HttpCall, Route, WireOperation
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses

if TYPE_CHECKING:
    from peripety.llmsim.wire.base import Wire


RULES = "All the rules of the house. " * 400  # 2800 tokens
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


class Caller:
    """Client that calls one wire, as one process would."""

    def __init__(self, wire: Wire, *limits: RateLimit) -> None:
        self.wire = wire
        self.simulator = Simulator(Script(default_response=ScriptResponse("It depends."), limits=limits))
        self.route = next(each for each in wire.routes if each.operation is WireOperation.GENERATE)

    def call(self, route: Route, body: Any, key: str, params: dict[str, str]) -> HttpCall:
        headers = {"authorization": f"Bearer {key}", "x-goog-api-key": key, "anthropic-version": "2026-10-21"}
        return HttpCall(route, headers, params, json.dumps(body).encode())

    def other(self, name: str, body: Any = None, **params: str) -> Any:
        route = next(each for each in self.wire.routes if each.name == name)
        answer = self.wire.handle_other(self.call(route, body or {}, "key", params), self.simulator)
        return json.loads(answer.body)

    def ask(self, body: dict[str, Any], key: str = "key", **params: str) -> dict[str, Any]:
        call = self.call(self.route, body, key, params)
        request = self.wire.parse_request(call, self.simulator)
        exchange = self.simulator.begin(request)
        if exchange.error is not None:
            raise exchange.error
        assert exchange.reply is not None
        document: dict[str, Any] = self.wire.document(request, exchange.reply)
        self.simulator.store_objects(self.wire.objects_to_store(request, exchange.reply))
        exchange.on_started()
        exchange.on_finished(self.wire.answer_blocks(request, exchange.reply))
        return document


def marked(text: str, ttl: str = "5m") -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def anthropic(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    rules = [marked(RULES)]
    return {"model": "claude-opus-5-5", "max_tokens": 99, "system": rules, "messages": messages, **more}


def counted(document: dict[str, Any]) -> tuple[int, int, int]:
    """Input tokens of Anthropic's: the rest, what was written, what was read."""
    usage = document["usage"]
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    rest, written, read = (usage[name] for name in names)
    assert sum(usage["cache_creation"].values()) == written
    return rest, written, read


HELLO = {"role": "user", "content": "hello"}
MORE = {"role": "user", "content": "and more"}


def test_anthropic_reads_the_marked_system_prompt_again() -> None:
    caller = Caller(AnthropicWire())
    assert counted(caller.ask(anthropic([HELLO])))[1:] == (2800, 0)
    assert counted(caller.ask(anthropic([MORE])))[1:] == (0, 2800)
    assert counted(caller.ask(anthropic([MORE]), key="another"))[1:] == (2800, 0)


def test_anthropic_grows_an_automatic_breakpoint_with_the_conversation() -> None:
    caller = Caller(AnthropicWire())
    automatic = {"cache_control": {"type": "ephemeral"}}
    first = caller.ask(anthropic([HELLO], **automatic))
    answer = {"role": "assistant", "content": first["content"]}
    rest, written, read = counted(caller.ask(anthropic([HELLO, answer, MORE], **automatic)))
    assert (rest, read) == (0, sum(counted(first)))
    assert 0 < written < 20


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"tools": [TOOL]}, 0),
        ({"system": [marked(RULES + "!")]}, 0),
        ({"tool_choice": {"type": "none"}}, 2800),
        ({"messages": [MORE]}, 2800),
    ],
)
def test_anthropic_forgets_what_comes_after_a_change(change: dict[str, Any], read: int) -> None:
    caller = Caller(AnthropicWire())
    caller.ask(anthropic([HELLO]))
    assert counted(caller.ask(anthropic([HELLO]) | change))[2] == read


def test_anthropic_refuses_a_fifth_marker() -> None:
    message = {"role": "user", "content": [marked(f"part {number}") for number in range(4)]}
    with pytest.raises(ApiError) as error:
        Caller(AnthropicWire()).ask(anthropic([message]))
    assert error.value.kind is ApiErrorKind.INVALID_REQUEST
    assert error.value.message == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_anthropic_entries_expire_by_the_virtual_clock() -> None:
    caller = Caller(AnthropicWire())
    caller.ask(anthropic([HELLO]))
    caller.simulator.advance(299)
    assert counted(caller.ask(anthropic([HELLO])))[2] == 2800
    caller.simulator.advance(300)
    assert counted(caller.ask(anthropic([HELLO])))[2] == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"messages": [HELLO, {"role": "assistant", "content": "Yes?"}, MORE]}, None),
        ({"model": "claude-opus-5"}, {"type": "model_changed", "cache_missed_input_tokens": 2800}),
        ({"tools": [TOOL]}, {"type": "tools_changed", "cache_missed_input_tokens": 2800}),
        ({"system": "Other rules."}, {"type": "system_changed", "cache_missed_input_tokens": 2800}),
        ({"messages": [MORE]}, {"type": "messages_changed", "cache_missed_input_tokens": 0}),
        ({"tool_choice": {"type": "none"}}, {"type": "unavailable"}),
    ],
)
def test_anthropic_tells_what_the_cache_missed(change: dict[str, Any], reason: dict[str, Any] | None) -> None:
    caller = Caller(AnthropicWire())
    first = caller.ask(anthropic([HELLO], diagnostics={"previous_message_id": None}))
    assert first["diagnostics"] == {"cache_miss_reason": None}
    wanted = {"diagnostics": {"previous_message_id": first["id"]}}
    assert caller.ask(anthropic([HELLO]) | change | wanted)["diagnostics"] == {"cache_miss_reason": reason}


def test_anthropic_compares_only_with_answers_to_the_same_key() -> None:
    caller = Caller(AnthropicWire())
    first = caller.ask(anthropic([HELLO], diagnostics={}))
    wanted = {"diagnostics": {"previous_message_id": first["id"]}}
    assert caller.ask(anthropic([HELLO]) | wanted, key="another")["diagnostics"] == {
        "cache_miss_reason": {"type": "previous_message_not_found"},
    }


def test_anthropic_tells_nothing_of_the_cache_unless_asked() -> None:
    assert Caller(AnthropicWire()).ask(anthropic([HELLO]))["diagnostics"] is None


def chat(model: str, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "system", "content": RULES}, *messages], **more}


def talk(caller: Caller, model: str, turns: int, **more: Any) -> list[dict[str, Any]]:
    """Return the usage of each turn of a conversation that repeats its history."""
    messages, found = [HELLO], []
    for _ in range(turns):
        document = caller.ask(chat(model, messages, **more))
        messages = [*messages, document["choices"][0]["message"], MORE]
        found.append(document["usage"])
    return found


def test_older_openai_models_read_in_steps() -> None:
    first, second = talk(Caller(OpenAiChat()), "gpt-4o", 2)
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["prompt_tokens_details"]["cached_tokens"] == first["prompt_tokens"] // 128 * 128


def test_newer_openai_models_read_and_write_at_breakpoints() -> None:
    first, second = talk(Caller(OpenAiChat()), "gpt-6.1-sol", 2)
    assert first["prompt_tokens_details"]["cache_write_tokens"] == first["prompt_tokens"]
    assert second["prompt_tokens_details"]["cached_tokens"] == first["prompt_tokens"]
    assert second["prompt_tokens_details"]["cache_write_tokens"] == (
        second["prompt_tokens"] - first["prompt_tokens"]
    )


def test_openai_forgets_everything_when_a_setting_changes() -> None:
    caller = Caller(OpenAiChat())
    talk(caller, "gpt-6.1-sol", 1)
    (usage,) = talk(caller, "gpt-6.1-sol", 1, reasoning_effort="low")
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_continued_response_reads_what_it_continues() -> None:
    caller = Caller(OpenAiResponses())
    rules = {"role": "developer", "content": RULES}
    first = caller.ask({"model": "gpt-6.1-sol", "input": [rules, HELLO]})
    second = caller.ask({"model": "gpt-6.1-sol", "input": "and more", "previous_response_id": first["id"]})
    assert second["usage"]["input_tokens_details"]["cached_tokens"] == first["usage"]["input_tokens"]


def test_deepseek_reads_whole_units() -> None:
    first, second = talk(Caller(DeepSeekWire()), "deepseek-flash", 2)
    assert first["prompt_cache_hit_tokens"] == 0
    assert second["prompt_cache_hit_tokens"] > first["prompt_tokens"]  # the answer is cached too
    assert all(
        each["prompt_tokens"] == each["prompt_cache_hit_tokens"] + each["prompt_cache_miss_tokens"]
        for each in (first, second)
    )


def gemini(caller: Caller, text: str, **more: Any) -> Any:
    contents = [{"role": "user", "parts": [{"text": text}]}]
    return caller.ask({"contents": contents, **more}, model="gemini-2.5-pro")["usageMetadata"]


def test_gemini_reads_what_was_sent_before() -> None:
    caller = Caller(GeminiWire())
    instruction = {"systemInstruction": {"parts": [{"text": RULES}]}}
    assert "cachedContentTokenCount" not in gemini(caller, "hello", **instruction)
    assert gemini(caller, "and more", **instruction)["cachedContentTokenCount"] == 2688


def test_gemini_reads_stored_contents_and_bills_their_storage() -> None:
    caller = Caller(GeminiWire())
    body = {"model": "models/gemini-2.5-pro", "systemInstruction": {"parts": [{"text": RULES}]}}
    stored = caller.other("cachedContents.create", body)
    usage = gemini(caller, "hello", cachedContent=stored["name"])
    assert usage["cachedContentTokenCount"] == stored["usageMetadata"]["totalTokenCount"] == 2800
    caller.simulator.advance(1800)
    caller.other("cachedContents.delete", id=stored["name"].partition("/")[2])
    with pytest.raises(ApiError) as error:
        gemini(caller, "hello", cachedContent=stored["name"])
    assert error.value.kind is ApiErrorKind.PERMISSION
    (account,) = caller.simulator.accounts
    asked = account.usage.fresh * 1_250_000 + 2800 * 125_000 + account.usage.output * 10_000_000
    assert account.amount == asked + 2800 * 4_500_000 // 2


def test_a_limit_is_told_in_the_answers_and_lifted_in_time() -> None:
    caller = Caller(AnthropicWire(), RateLimit(requests_per_minute=2))
    caller.ask(anthropic([HELLO]))
    caller.ask(anthropic([HELLO]))
    with pytest.raises(ApiError) as error:
        caller.ask(anthropic([HELLO]))
    assert error.value.kind is ApiErrorKind.RATE_LIMIT
    assert error.value.retry is not None
    assert error.value.retry.seconds == 30
    caller.simulator.advance(error.value.retry.seconds)
    caller.ask(anthropic([HELLO]))


def test_each_key_has_an_account_for_each_model() -> None:
    caller = Caller(AnthropicWire())
    caller.ask(anthropic([HELLO]))
    caller.ask(anthropic([HELLO]))
    (account,) = caller.simulator.accounts
    assert (account.model, account.requests) == ("claude-opus-5-5", 2)
    usage = account.usage
    assert (usage.read, usage.written) == (2800, {"5m": 2800})
    prices = usage.fresh * 4_000_000 + 2800 * (200_000 + 5_000_000) + usage.output * 20_000_000
    assert account.amount == prices
