"""Features that only `ollama` has: single prompts, models, loading; the table of all SDKs has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ollama
import pytest

from support.llmsim.simulator import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator


SCENARIO = """
[[responses]]
pattern = { type = "exact", text = "Why?" }
response = { reasoning = "Hm.", text = "Because." }

[[responses]]
pattern = { type = "contains", text = "long" }
response = "Read."

[[responses]]
pattern = { type = "exact", text = "missing" }
failure = { type = "not_found", message = "model 'llama3' not found" }

[[responses]]
pattern = { type = "exact", text = "broken" }
response = "one two three"
failure = { type = "error_in_stream", after_chunks = 2 }

[[responses]]
pattern = { type = "exact", text = "look" }
response = { tool_calls = [{ tool = "add", input = { a = 1, b = 2 } }] }

[[responses.turns]]
expect = { type = "any", tool_result = { type = "exact", text = "3" } }
response = "Three."
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(SCENARIO) as one:
        yield one


@pytest.fixture
def client(server: Served) -> Iterator[ollama.Client]:
    with ollama.Client(server.url, trust_env=False) as one:
        yield one


def test_a_single_prompt_is_answered_whole_and_in_pieces(client: ollama.Client) -> None:
    whole = client.generate("llama3", "Why?")
    assert (whole.response, whole.thinking, whole.done_reason) == ("Because.", "Hm.", "stop")
    pieces = list(client.generate("llama3", "Why?", stream=True))
    assert "".join(piece.response or "" for piece in pieces) == "Because."
    assert "".join(piece.thinking or "" for piece in pieces) == "Hm."
    assert client.generate("llama3", "Why?", think=False).thinking is None


def test_durations_are_nanoseconds_that_add_up(client: ollama.Client) -> None:
    answer = client.generate("llama3", "Why?")
    assert answer.total_duration is not None
    parts = (answer.load_duration, answer.prompt_eval_duration, answer.eval_duration)
    assert answer.total_duration == sum(part or 0 for part in parts)
    assert (answer.prompt_eval_count, answer.eval_count) == (1, 3)


def test_a_prompt_is_cut_to_the_context_without_a_word(client: ollama.Client) -> None:
    said = [
        {"role": "user", "content": "word" * 6000},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "long"},
    ]
    assert client.chat("llama3", said).prompt_eval_count == 2
    roomy = client.chat("llama3", said, options={"num_ctx": 8192})
    assert roomy.prompt_eval_count == 6002


def test_the_sdk_describes_functions_and_their_results_are_read(client: ollama.Client) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: one.
            b: the other.
        """
        return a + b

    said: list[ollama.Message] = [ollama.Message(role="user", content="look")]
    answer = client.chat("llama3", said, tools=[add])
    (called,) = answer.message.tool_calls or ()
    said += [
        answer.message,
        ollama.Message(role="tool", tool_name="add", content=str(add(**called.function.arguments))),
    ]
    assert client.chat("llama3", said, tools=[add]).message.content == "Three."


def test_errors_are_told_in_their_own_words(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        client.generate("llama3", "missing")
    assert (caught.value.error, caught.value.status_code) == ("model 'llama3' not found", 404)
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("llama3", [{"role": "robot", "content": "x"}])
    assert caught.value.error == "invalid role: robot, must be one of [system user assistant tool]"


def test_an_error_in_a_stream_is_raised_where_it_comes(client: ollama.Client) -> None:
    seen: list[str | None] = []
    with pytest.raises(ollama.ResponseError, match="Overloaded"):
        seen.extend(piece.response for piece in client.generate("llama3", "broken", stream=True))
    assert len(seen) == 2


def test_models_are_told_of(client: ollama.Client) -> None:
    assert isinstance(client.list().models, list)
    shown = client.show("llama3")
    assert "tools" in (shown.capabilities or ())
    assert list(client.ps().models) == []
