"""Features of the `openai` SDK: retries, caching, helpers; the table of all SDKs has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from pydantic import BaseModel

from support.gateway.fake_server import RULES, noted_pauses
from support.llmsim.simulator import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator


SCENARIO = (
    """
default_response = { text = "What?" }

[[responses]]
pattern = { type = "exact", text = "hello" }
response = { text = "Hello!", reasoning = "A greeting." }

[[responses]]
pattern = { type = "exact", text = "weather" }
response = { text = "Let me see.", tool_calls = [{ tool = "Weather", input = { city = "Oslo" } }] }

[[responses.turns]]
expect = { type = "any", tool_result = "sunny" }
response = "It is sunny."

[[responses]]
pattern = { type = "exact", text = "much later" }
failure = { type = "rate_limit", retry_after = 121 }
"""
    + RULES
)
MODEL = "gpt-6-sol"


class Weather(BaseModel):
    city: str


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(SCENARIO) as one:
        yield one


@pytest.fixture
def client(server: Served) -> Iterator[openai.OpenAI]:
    """A client that refuses what is not exactly of the documented type."""
    url = f"{server.url}/v1"
    with openai.OpenAI(api_key="key", base_url=url, _strict_response_validation=True) as one:
        yield one


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return noted_pauses(monkeypatch)


def ask(client: openai.OpenAI, text: str, **members: Any) -> Any:
    messages: list[Any] = [{"role": "user", "content": text}]
    return client.chat.completions.create(**{"model": MODEL, "messages": messages, **members})


def said(done: Any) -> Any:
    return done.choices[0].message.content


# ---- retries


def test_what_is_overloaded_is_asked_three_times(client: openai.OpenAI, pauses: list[float]) -> None:
    assert said(ask(client, "refused twice")) == "At last."
    assert [0.375 <= pause <= 0.5 for pause in pauses[:1]] == [True]
    assert [0.75 <= pause <= 1.0 for pause in pauses[1:]] == [True]


@pytest.mark.parametrize(
    ("kind", "raised", "attempts"),
    [
        ("conflict", "ConflictError", 3),
        ("unavailable", "InternalServerError", 3),
        ("out_of_credits", "RateLimitError", 3),  # though it would not help
        ("invalid_request", "BadRequestError", 1),
        ("permission_denied", "PermissionDeniedError", 1),
    ],
)
def test_only_what_may_pass_is_tried_again(
    server: Served,
    client: openai.OpenAI,
    pauses: list[float],
    kind: str,
    raised: str,
    attempts: int,
) -> None:
    before = len(server.simulator.captured)
    with pytest.raises(openai.APIStatusError) as caught:
        ask(client, f"fails: {kind}")
    assert type(caught.value).__name__ == raised
    assert caught.value.request_id is not None
    assert len(server.simulator.captured) - before == attempts == len(pauses) + 1


@pytest.mark.parametrize(("prompt", "pause"), [("in seconds", 3), ("in milliseconds", 1.25)])
def test_the_sdk_comes_back_when_it_is_told_to(
    client: openai.OpenAI,
    pauses: list[float],
    prompt: str,
    pause: float,
) -> None:
    assert said(ask(client, prompt)) == "At last."
    assert pauses == [pause]


def test_the_sdk_comes_back_at_a_date(client: openai.OpenAI, pauses: list[float]) -> None:
    ask(client, "at a date")
    (pause,) = pauses
    assert 20 < pause <= 41


def test_the_sdk_gives_up_when_it_is_told_to_wait_too_long(
    client: openai.OpenAI,
    pauses: list[float],
) -> None:
    with pytest.raises(openai.RateLimitError) as caught:
        ask(client, "much later")
    assert (caught.value.code, pauses) == ("rate_limit_exceeded", [])


# ---- streams


def test_a_stream_without_its_end_raises_nothing(client: openai.OpenAI) -> None:
    chunks = list(ask(client, "cut", stream=True))
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_an_error_in_a_stream_is_raised(client: openai.OpenAI) -> None:
    seen: list[Any] = []
    with pytest.raises(openai.APIError) as caught:
        seen.extend(chunk.choices[0].delta.content for chunk in ask(client, "broken", stream=True))
    assert len([piece for piece in seen if piece]) == 2
    assert (caught.value.type, caught.value.code) == ("service_unavailable_error", "server_is_overloaded")


def test_an_error_in_a_stream_of_events_is_raised(client: openai.OpenAI) -> None:
    seen: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        seen.extend(event.type for event in client.responses.create(model=MODEL, input="broken", stream=True))
    assert seen.count("response.output_text.delta") == 2
    assert caught.value.code == "server_is_overloaded"


def test_comments_in_a_stream_are_ignored(server: Served) -> None:
    with openai.OpenAI(api_key="key", base_url=server.url) as client:
        chunks = list(ask(client, "hello", model="deepseek-flash", stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello!"


# ---- caching and limits


def test_what_was_cached_is_read_and_the_whole_input_stays_the_same(client: openai.OpenAI) -> None:
    part: Any = {
        "type": "text",
        "text": "Be brief. " * 800,
        "prompt_cache_breakpoint": {"mode": "explicit"},
    }
    messages: list[Any] = [{"role": "system", "content": [part]}, {"role": "user", "content": "hello"}]
    options: Any = {"mode": "explicit", "ttl": "30m"}
    first, second = (ask(client, "", messages=messages, prompt_cache_options=options).usage for _ in range(2))
    assert first.prompt_tokens == second.prompt_tokens
    written, read = first.prompt_tokens_details, second.prompt_tokens_details
    assert written.cache_write_tokens == read.cached_tokens > 2000
    assert written.cached_tokens == read.cache_write_tokens == 0


def test_each_lifetime_of_what_was_written_is_told(client: openai.OpenAI) -> None:
    text = "Be quite brief. " * 400
    options: Any = {"mode": "implicit", "ttl": "12h"}
    done = client.responses.create(model=MODEL, input=text, prompt_cache_options=options)
    assert done.usage is not None
    details = done.usage.input_tokens_details
    assert details.cache_write_tokens_details is not None
    assert details.cache_write_tokens_details.ttl_12h_tokens == details.cache_write_tokens > 1000
    assert details.cache_write_tokens_details.ttl_30m_tokens == 0


def test_what_is_left_of_the_limits_is_in_the_headers() -> None:
    limited = '[[limits]]\nrequests_per_minute = 2\n[default_response]\ntext = "Yes."\n'
    with served(limited) as one, openai.OpenAI(api_key="key", base_url=f"{one.url}/v1") as client:
        raw = client.chat.completions.with_raw_response
        answer = raw.create(model=MODEL, messages=[{"role": "user", "content": "x"}])
        assert answer.headers["x-ratelimit-limit-requests"] == "2"
        assert answer.headers["x-ratelimit-remaining-requests"] == "1"
        assert answer.headers["x-ratelimit-reset-requests"] == "30s"
        ask(client, "y")
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client.with_options(max_retries=0), "z")
        assert caught.value.code == "rate_limit_exceeded"
        assert caught.value.response.headers["retry-after"] == "30"


# ---- keys and paths


def test_each_client_brings_its_key_in_its_own_way() -> None:
    guarded = 'keys = ["right"]\n[default_response]\ntext = "Come in."\n'
    with served(guarded) as one:
        azure = openai.AzureOpenAI(azure_endpoint=one.url, api_key="right", api_version="2026-10-21")
        with azure, openai.OpenAI(api_key="right", base_url=f"{one.url}/v1") as client:
            assert said(ask(azure, "x")) == said(ask(client, "x")) == "Come in."
            assert azure.responses.create(model=MODEL, input="x").output_text == "Come in."
            with pytest.raises(openai.AuthenticationError) as caught:
                ask(client.with_options(api_key="wrong"), "x")
            assert caught.value.code == "invalid_api_key"
            assert "wrong" not in str(caught.value)


def test_a_path_that_does_not_exist_is_an_error_of_the_providers(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="text-embedding-3-small", input="x")
    assert caught.value.type == "invalid_request_error"


def test_models_are_listed_and_shown(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert len(set(names)) == len(names)
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-nobody")
    assert caught.value.code == "model_not_found"


# ---- tools


def test_tools_of_the_sdk_are_offered_called_and_answered(client: openai.OpenAI) -> None:
    tools: list[Any] = [openai.pydantic_function_tool(Weather)]
    messages: list[Any] = [{"role": "user", "content": "weather"}]
    done = client.chat.completions.parse(model=MODEL, messages=messages, tools=tools)
    message = done.choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.parsed_arguments == Weather(city="Oslo")
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}]
    assert said(ask(client, "", messages=messages, tools=tools)) == "It is sunny."


def test_tools_of_the_sdk_are_read_from_a_stream(client: openai.OpenAI) -> None:
    tools: list[Any] = [openai.pydantic_function_tool(Weather)]
    messages: list[Any] = [{"role": "user", "content": "weather"}]
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as events:
        called = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [event.parsed_arguments for event in called] == [Weather(city="Oslo")]


def test_a_call_without_its_result_is_refused(client: openai.OpenAI) -> None:
    tools: list[Any] = [openai.pydantic_function_tool(Weather)]
    messages: list[Any] = [{"role": "user", "content": "weather"}]
    message = ask(client, "", messages=messages, tools=tools).choices[0].message
    with pytest.raises(openai.BadRequestError, match="did not have response messages: call_"):
        ask(client, "", messages=[*messages, message, *messages], tools=tools)


# ---- stored responses


def test_a_response_is_continued_shown_listed_and_deleted(client: openai.OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="weather")
    (call,) = [item for item in first.output if item.type == "function_call"]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = client.responses.create(model=MODEL, input=[output], previous_response_id=first.id)
    assert second.output_text == "It is sunny."
    assert client.responses.retrieve(second.id) == second
    assert [item.type for item in client.responses.input_items.list(second.id)] == ["function_call_output"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="x", previous_response_id=second.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_response_is_there_for_its_own_key_alone(client: openai.OpenAI) -> None:
    made = client.responses.create(model=MODEL, input="hello")
    with pytest.raises(openai.NotFoundError):
        client.with_options(api_key="other").responses.retrieve(made.id)


def test_input_tokens_are_counted_as_they_are_billed(client: openai.OpenAI) -> None:
    counted = client.responses.input_tokens.count(model=MODEL, input="hello", instructions="Be kind.")
    made = client.responses.create(model=MODEL, input="hello", instructions="Be kind.")
    assert made.usage is not None
    assert counted.input_tokens == made.usage.input_tokens


def test_reasoning_is_counted_and_sent_back_without_being_kept(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "hello"}]
    made = client.responses.create(
        model=MODEL,
        input=messages,
        store=False,
        include=["reasoning.encrypted_content"],
    )
    assert made.usage is not None
    assert made.usage.output_tokens_details.reasoning_tokens > 0
    assert made.output[0].type == "reasoning"
    assert made.output[0].encrypted_content
    messages = [*messages, *made.output, *messages]
    again = client.responses.create(model=MODEL, input=messages, store=False)
    assert again.status == "completed"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
