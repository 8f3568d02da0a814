"""Behaviour of the `anthropic` SDK alone: retries, caching, helpers; the table of all SDKs has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import anthropic
import pytest
from anthropic import beta_tool

from support.gateway.fake_server import RULES, noted_pauses
from support.llmsim.simulator import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator


SCENARIO = (
    """
[[responses]]
pattern = { type = "exact", text = "hello" }
response = "Hello!"

[[responses]]
pattern = { type = "exact", text = "weather" }
response = { text = "Let me see.", tool_calls = [{ tool = "weather", input = { city = "Oslo" } }] }

[[responses.turns]]
expect = { type = "any", tool_result = "sunny in Oslo" }
response = "It is sunny."
"""
    + RULES
)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(SCENARIO) as one:
        yield one


@pytest.fixture
def client(server: Served) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="key", base_url=server.url) as one:
        yield one


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return noted_pauses(monkeypatch)


def ask(client: anthropic.Anthropic, text: str, **members: Any) -> Any:
    return client.messages.create(
        model="claude-opus-5-5",
        max_tokens=1000,
        messages=[{"role": "user", "content": text}],
        **members,
    )


def test_what_is_overloaded_is_asked_three_times(client: anthropic.Anthropic, pauses: list[float]) -> None:
    assert ask(client, "refused twice").content[0].text == "At last."
    assert [0.375 <= pause <= 0.5 for pause in pauses[:1]] == [True]
    assert [0.75 <= pause <= 1.0 for pause in pauses[1:]] == [True]


@pytest.mark.parametrize(
    ("kind", "raised", "attempts"),
    [
        ("conflict", "ConflictError", 3),
        ("unavailable", "ServiceUnavailableError", 3),
        ("overloaded", "OverloadedError", 3),
        ("out_of_credits", "PaymentRequiredError", 1),
        ("too_large", "ContentTooLargeError", 1),
    ],
)
def test_only_what_may_pass_is_tried_again(
    server: Served,
    client: anthropic.Anthropic,
    pauses: list[float],
    kind: str,
    raised: str,
    attempts: int,
) -> None:
    before = len(server.simulator.captured)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, f"fails: {kind}")
    assert type(caught.value).__name__ == raised
    assert caught.value.request_id is not None
    assert len(server.simulator.captured) - before == attempts == len(pauses) + 1


@pytest.mark.parametrize(("prompt", "pause"), [("in seconds", 3), ("in milliseconds", 1.25)])
def test_the_sdk_comes_back_when_it_is_told_to(
    client: anthropic.Anthropic,
    pauses: list[float],
    prompt: str,
    pause: float,
) -> None:
    assert ask(client, prompt).content[0].text == "At last."
    assert pauses == [pause]


def test_the_sdk_comes_back_at_a_date(client: anthropic.Anthropic, pauses: list[float]) -> None:
    ask(client, "at a date")
    (pause,) = pauses
    assert 20 < pause <= 41


def test_a_stream_without_its_end_raises_nothing(client: anthropic.Anthropic) -> None:
    kinds = [event.type for event in ask(client, "cut", stream=True)]
    assert kinds[-1] == "message_delta"


def test_an_error_in_a_stream_is_raised_with_the_streams_status(client: anthropic.Anthropic) -> None:
    seen: list[str] = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        seen.extend(event.type for event in ask(client, "broken", stream=True))
    assert seen.count("content_block_delta") == 2
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")


def test_either_header_brings_the_key_to_the_simulator(server: Served) -> None:
    guarded = 'keys = ["right"]\n[default_response]\ntext = "Come in."\n'
    with served(guarded) as one, anthropic.Anthropic(api_key="right", base_url=one.url) as known:
        assert ask(known, "x").content[0].text == "Come in."
        older = known.with_options(
            api_key="wrong",
            default_headers={"x-api-key": "right", "anthropic-version": "2023-06-01"},
        )
        assert ask(older, "x").content[0].text == "Come in."
        with pytest.raises(anthropic.AuthenticationError):
            ask(known.with_options(api_key="wrong"), "x")


def test_what_was_cached_is_read_and_the_whole_input_stays_the_same(client: anthropic.Anthropic) -> None:
    system: Any = [{"type": "text", "text": "Be brief. " * 400, "cache_control": {"type": "ephemeral"}}]
    first, second = (ask(client, "hello", system=system).usage for _ in range(2))
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens == 1000
    assert first.cache_creation.ephemeral_5m_input_tokens == 1000
    assert first.cache_read_input_tokens == second.cache_creation_input_tokens == 0
    assert first.input_tokens == second.input_tokens
    counted = client.messages.count_tokens(
        model="claude-opus-5-5",
        system=system,
        messages=[{"role": "user", "content": "hello"}],
    )
    assert counted.input_tokens == first.input_tokens + 1000


def test_a_fifth_marker_is_refused(client: anthropic.Anthropic) -> None:
    block: Any = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    with pytest.raises(anthropic.BadRequestError, match="A maximum of 4 blocks"):
        ask(client, "hello", system=[block] * 5)


@pytest.mark.parametrize("thread", [None, False], ids=["held", "not held"])
def test_the_sdk_runs_tools_in_a_conversation_that_either_side_holds(
    server: Served,
    client: anthropic.Anthropic,
    thread: Literal[False] | None,
) -> None:
    before = len(server.simulator.captured)

    @beta_tool
    def weather(city: str) -> str:
        """Return the weather.

        Args:
            city: where.
        """
        return f"sunny in {city}"

    runner = client.beta.messages.tool_runner(
        model="claude-opus-5-5",
        max_tokens=1000,
        tools=[weather],
        thread=thread,
        messages=[{"role": "user", "content": "weather"}],
    )
    kinds = [[block.type for block in message.content] for message in runner]
    assert kinds == [["text", "tool_use"], ["text"]]
    assert len(server.simulator.captured) - before == 2


def test_models_are_listed_over_as_many_pages_as_it_takes(client: anthropic.Anthropic) -> None:
    names = [model.id for model in client.models.list(limit=5)]
    assert len(set(names)) == len(names) > 5
    assert client.models.retrieve("claude-opus-5-5").max_tokens == 128_000
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nobody")


def test_a_path_that_does_not_exist_is_an_error_of_the_providers(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.batches.list()
    assert caught.value.type == "not_found_error"
