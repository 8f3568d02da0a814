"""Features that only the Gemini API has, through `google-genai`."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.llmsim.simulator import Served


MODEL = "gemini-3.5-flash"
LONG = "word " * 4_000

SCENARIO = """
keys = ["one", "two"]

[[responses]]
pattern = { type = "exact", text = "begin" }
response = "begun"
turns = [{ expect = { type = "any" }, response = "next" }]

[[responses]]
pattern = { type = "exact", text = "call" }
response = { tool_calls = [{ tool = "look", input = { at = "a" } }, { tool = "look", input = { at = "b" } }] }
turns = [{ expect = { type = "any", tool_result = "seen a" }, response = "done" }]

[[responses]]
pattern = { type = "exact", text = "structured" }
response = { json = { label = "a", amounts = [1, 2] } }

[[responses]]
pattern = { type = "exact", text = "busy" }
response = "at last"
failure = { type = "overloaded", times = 2 }

[[responses]]
pattern = { type = "exact", text = "wrong" }
response = "never"
failure = { type = "invalid_request", times = 1 }

[[responses]]
pattern = { type = "any" }
response = "äöü 漢字"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(SCENARIO) as one:
        yield one


def client(server: Served, key: str = "one") -> genai.Client:
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=server.url))


class Labelled(BaseModel):
    label: str
    amounts: list[int]


def test_contents_are_stored_used_prolonged_and_deleted(server: Served) -> None:
    mine = client(server)
    config = types.CreateCachedContentConfig(
        contents=[types.Content(role="user", parts=[types.Part(text=LONG)])],
        system_instruction="s",
        display_name="d",
        ttl="600s",
    )
    stored = mine.caches.create(model=MODEL, config=config)
    assert stored.name
    assert stored.usage_metadata
    tokens = stored.usage_metadata.total_token_count
    answer = mine.models.generate_content(
        model=MODEL,
        contents="hi",
        config=types.GenerateContentConfig(cached_content=stored.name),
    )
    assert answer.usage_metadata
    assert answer.usage_metadata.cached_content_token_count == tokens
    assert (answer.usage_metadata.prompt_token_count or 0) > (tokens or 0)
    assert [each.name for each in mine.caches.list()] == [stored.name]
    another = client(server, "two")
    assert list(another.caches.list()) == []
    later = mine.caches.update(name=stored.name, config=types.UpdateCachedContentConfig(ttl="7200s"))
    assert later.expire_time
    assert stored.expire_time
    assert later.expire_time > stored.expire_time
    assert mine.caches.get(name=stored.name).display_name == "d"
    mine.caches.delete(name=stored.name)
    with pytest.raises(errors.ClientError) as caught:
        mine.caches.get(name=stored.name)
    assert (caught.value.code, caught.value.status) == (403, "PERMISSION_DENIED")


def test_a_prompt_that_was_sent_before_is_read_from_the_cache(server: Served) -> None:
    mine = client(server)

    def cached(using: genai.Client) -> int:
        usage = using.models.generate_content(model=MODEL, contents=f"again {LONG}").usage_metadata
        assert usage
        return usage.cached_content_token_count or 0

    assert cached(mine) == 0
    assert cached(mine) > 4096
    assert cached(client(server, "two")) == 0


def test_tokens_are_counted_as_they_are_reported_later(server: Served) -> None:
    mine = client(server)
    counted = mine.models.count_tokens(model=MODEL, contents="äöü 漢字")
    usage = mine.models.generate_content(model=MODEL, contents="äöü 漢字").usage_metadata
    assert usage
    assert counted.total_tokens == usage.prompt_token_count


def test_models_are_listed_and_found(server: Served) -> None:
    mine = client(server)
    names = [each.name for each in mine.models.list(config={"page_size": 3})]
    assert f"models/{MODEL}" in names
    assert mine.models.get(model=MODEL).input_token_limit
    with pytest.raises(errors.ClientError) as caught:
        mine.models.get(model="nothing")
    assert caught.value.code == 404


def test_an_answer_is_parsed_into_a_model_of_the_caller_s(server: Served) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Labelled)
    mine = client(server)
    answer = mine.models.generate_content(model=MODEL, contents="structured", config=config)
    assert answer.parsed == Labelled(label="a", amounts=[1, 2])


def test_functions_that_the_sdk_runs_itself_are_answered(server: Served) -> None:
    asked: list[str] = []

    def look(at: str) -> str:
        """Look at something."""
        asked.append(at)
        return f"seen {at}"

    config = types.GenerateContentConfig(tools=[look])
    mine = client(server)
    answer = mine.chats.create(model=MODEL, config=config).send_message("call")
    assert answer.text == "done"
    assert asked == ["a", "b"]


def test_keys_share_no_conversation_and_unknown_ones_are_refused(server: Served) -> None:
    clients = [client(server, key) for key in ("one", "two", "three")]
    first, second, third = (each.chats.create(model=MODEL) for each in clients)
    assert first.send_message("begin").text == "begun"
    assert second.send_message("other").text == "äöü 漢字"
    assert first.send_message("more").text == "next"
    with pytest.raises(errors.ClientError) as caught:
        third.send_message("a")
    assert caught.value.code == 400
    assert caught.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_a_call_that_lost_its_signature_is_refused(server: Served) -> None:
    mine = client(server)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="look")])],
    )
    answer = mine.models.generate_content(model=MODEL, contents="call", config=config)
    calls = answer.function_calls or []
    result = types.Part.from_function_response(name="look", response={"output": "seen a"})
    history = [
        types.Content(role="user", parts=[types.Part(text="call")]),
        types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]),
        types.Content(role="user", parts=[result for _ in calls]),
    ]
    with pytest.raises(errors.ClientError, match="missing a thought_signature"):
        mine.models.generate_content(model=MODEL, contents=list(history), config=config)
    history[1] = answer.candidates[0].content  # type: ignore[index,assignment]
    assert mine.models.generate_content(model=MODEL, contents=list(history), config=config).text == "done"


def asked(server: Served, prompt: str) -> int:
    """Return the number of requests with this prompt."""
    return len(server.simulator.captured.find_by_prompt(prompt))


def test_the_sdk_tries_again_only_if_it_is_told_to_and_only_what_may_pass(server: Served) -> None:
    mine = client(server)
    with pytest.raises(errors.ServerError):
        mine.models.generate_content(model=MODEL, contents="busy")
    assert asked(server, "busy") == 1
    options = types.HttpRetryOptions(attempts=3, initial_delay=0.01, jitter=0.01)
    config = types.GenerateContentConfig(http_options=types.HttpOptions(retry_options=options))
    assert mine.models.generate_content(model=MODEL, contents="busy", config=config).text == "at last"
    assert asked(server, "busy") == 3
    with pytest.raises(errors.ClientError):
        mine.models.generate_content(model=MODEL, contents="wrong", config=config)
    assert asked(server, "wrong") == 1


def post(server: Served, path: str, body: Any) -> tuple[str, bytes]:
    request = urllib.request.Request(  # noqa: S310
        f"{server.url}{path}",
        json.dumps(body).encode(),
        {"x-goog-api-key": "one"},
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return answer.headers["content-type"], answer.read()


def test_without_events_a_stream_is_one_array(server: Served) -> None:
    body = {"contents": [{"parts": [{"text": "a"}]}]}
    media_type, text = post(server, f"/v1beta/models/{MODEL}:streamGenerateContent", body)
    assert media_type.startswith("application/json")
    chunks = json.loads(text)
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(part["text"] for part in parts) == "äöü 漢字"
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
