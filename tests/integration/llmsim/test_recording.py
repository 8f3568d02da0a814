"""A simulator in the place of a provider: what a proxy records of it answers the official SDKs the same."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import ollama
import openai
import pytest
from aiohttp import web
from google import genai
from google.genai import types

from peripety.errors import FailedPreconditionError
from peripety.llmsim import ScriptBuilder, Simulator, load_script
from peripety.llmsim.record.proxy import serve_proxy
from peripety.llmsim.record.recorder import ScriptRecorder
from peripety.llmsim.server.runner import accept_connections, serve_simulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from peripety.llmsim import Script


KEY = "sk-ant-canary-0123456789abcdef"
HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

Seen = dict[str, Any]


def ask_anthropic(url: str, prompt: str, *, stream: bool) -> Seen:
    tools = [{"name": "weather", "input_schema": TOOL}]
    given: Any = {
        "model": "claude-sonnet-5",
        "max_tokens": 3000,
        "messages": [{"role": "user", "content": prompt}],
        "tools": tools,
        "thinking": {"type": "adaptive", "display": "summarized"},
    }
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        if stream:
            with client.messages.stream(**given) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**given)
    return {
        "content": [block.model_dump(exclude={"id", "signature", "caller"}) for block in message.content],
        "stop": message.stop_reason,
        "usage": message.usage.model_dump(),
    }


def ask_chat(url: str, prompt: str, *, stream: bool, model: str = "gpt-5") -> Seen:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
    given: Any = {"model": model, "messages": [{"role": "user", "content": prompt}], "tools": tools}
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(**given, stream_options={"include_usage": True}) as events:
                completion: Any = [event for event in events if event.type == "chunk"][-1].snapshot
        else:
            completion = client.chat.completions.create(**given)
    message = completion.choices[0].message
    return {
        "text": message.content,
        "reasoning": getattr(message, "reasoning_content", None),
        "calls": [(call.function.name, call.function.arguments) for call in message.tool_calls or ()],
        "stop": completion.choices[0].finish_reason,
        "usage": completion.usage.model_dump(),
    }


def ask_deepseek(url: str, prompt: str, *, stream: bool) -> Seen:
    return ask_chat(url, prompt, stream=stream, model="deepseek-flash")


def ask_responses(url: str, prompt: str, *, stream: bool) -> Seen:
    tools = [{"type": "function", "name": "weather", "parameters": TOOL, "strict": False}]
    given: Any = {"model": "gpt-5", "input": prompt, "tools": tools, "reasoning": {"summary": "auto"}}
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if stream:
            with client.responses.stream(**given) as events:
                final: Any = list(events)[-1]
            response: Any = final.response
        else:
            response = client.responses.create(**given)
    return {
        "output": [
            item.model_dump(exclude={"id", "call_id", "encrypted_content"}) for item in response.output
        ],
        "usage": response.usage.model_dump(),
        "status": response.status,
    }


def ask_gemini(url: str, prompt: str, *, stream: bool) -> Seen:
    declaration = types.FunctionDeclaration(name="weather", parameters_json_schema=TOOL)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declaration])],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    given: Any = {"model": "gemini-3-pro", "contents": prompt, "config": config}
    with closing(genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))) as client:
        if stream:
            answers = list(client.models.generate_content_stream(**given))
        else:
            answers = [client.models.generate_content(**given)]
    candidates = [each.candidates[0] for each in answers if each.candidates]
    parts = [part for each in candidates if each.content for part in each.content.parts or ()]
    usage = answers[-1].usage_metadata
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thoughts": "".join(part.text or "" for part in parts if part.thought),
        "calls": [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
        "stop": candidates[-1].finish_reason,
        "usage": usage and usage.model_dump(),
    }


def ask_ollama(url: str, prompt: str, *, stream: bool) -> Seen:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}]
    given: Any = {
        "model": "qwen3",
        "messages": [{"role": "user", "content": prompt}],
        "tools": tools,
        "think": True,
        "stream": stream,
    }
    with ollama.Client(host=url, headers={"authorization": f"Bearer {KEY}"}) as client:
        answer: Any = client.chat(**given)
        answers = list(answer) if stream else [answer]
    messages = [each.message for each in answers]
    calls = [call.function for message in messages for call in message.tool_calls or ()]
    return {
        "text": "".join(message.content or "" for message in messages),
        "thinking": "".join(message.thinking or "" for message in messages),
        "calls": [(call.name, dict(call.arguments)) for call in calls],
        "stop": answers[-1].done_reason,
        "usage": (answers[-1].prompt_eval_count, answers[-1].eval_count),
    }


Ask = Any
APIS: list[Ask] = [ask_anthropic, ask_chat, ask_responses, ask_deepseek, ask_gemini, ask_ollama]
PROMPTS = ["Say it", "Weather?", "Both", "Go on and on"]
SCENARIO = (
    ScriptBuilder(seed=3)
    .respond_to("Say", {"text": "Grüß Gott, wie geht's?", "reasoning": "A greeting is wanted."})
    .respond_to(
        "Weather",
        {"tool_calls": [{"tool": "weather", "input": {"city": c}} for c in ("Oslo", "Zürich")]},
    )
    .respond_to("Both", {"text": "I'll look.", "tool_calls": [{"tool": "weather", "input": {"city": "Rom"}}]})
    .respond_to(
        "Go on",
        {"text": "and on " * 20, "stop": "length", "usage": {"input_tokens": 70, "output_tokens": 41}},
    )
    .build()
)


async def record(scenario: Script, path: Path, use: Callable[[str], Awaitable[Any]]) -> Any:
    """Use a provider that plays a scenario through a proxy that records it."""
    async with (
        serve_simulator(Simulator(scenario)) as provider,
        serve_proxy(provider, ScriptRecorder(path)) as url,
    ):
        return await use(url)


async def replay(path: Path, use: Callable[[str], Awaitable[Any]]) -> Any:
    async with serve_simulator(Simulator(load_script(path))) as url:
        return await use(url)


@pytest.mark.slow_after(3, reason="one case for each wire format")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", APIS, ids=lambda ask: ask.__name__.removeprefix("ask_"))
async def test_what_was_recorded_answers_the_same(tmp_path: Path, ask: Ask, stream: bool) -> None:
    async def use(url: str) -> list[Seen]:
        return [await asyncio.to_thread(ask, url, prompt, stream=stream) for prompt in PROMPTS]

    path = tmp_path / "recorded.toml"
    seen = await record(SCENARIO, path, use)
    assert await replay(path, use) == seen


def chat(*said: str, **more: Any) -> dict[str, Any]:
    """Return a request to Anthropic with these messages in turn, the user first."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]
    return {"model": "claude-sonnet-5", "max_tokens": 900, "messages": messages, **more}


async def post(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    async with httpx2.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/messages", json=body, headers=HEADERS)
    return answer.status_code, answer.json()


def told(answer: tuple[int, Any]) -> Any:
    """Return the content of an answer."""
    status, body = answer
    return (
        [block.get("text") or block.get("input") for block in body["content"]]
        if status == 200
        else body["error"]
    )


LOGIN = (
    ScriptBuilder()
    .respond_to("login", "Who are you?")
    .then("And the password?")
    .then({"tool_calls": [{"tool": "check", "input": {"strict": True}}]})
    .turn({"type": "any", "tool_result": "fine"}, "Welcome.")
    .default_response("I don't understand.")
    .build()
)


async def test_a_conversation_that_goes_on_becomes_one_rule_with_turns(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    called = {"type": "tool_use", "id": "toolu_1", "name": "check", "input": {"strict": True}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "it is fine"}

    async def use(url: str) -> list[Any]:
        said = ["login", "Who are you?", "me", "And the password?", "secret"]
        with_result = chat(*said)
        with_result["messages"] += [
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ]
        with_result["tools"] = [{"name": "check", "input_schema": {"type": "object"}}]
        bodies = [chat(*said[:1]), chat(*said[:3]), chat(*said), with_result, chat("something else")]
        return [told(await post(url, body)) for body in bodies]

    seen = await record(LOGIN, path, use)
    assert seen == [
        ["Who are you?"], ["And the password?"], [{"strict": True}], ["Welcome."], ["I don't understand."],
    ]  # fmt: skip
    rules = load_script(path).responses
    assert [len(rule.turns) for rule in rules] == [3, 0]
    assert rules[0].turns[2].expect.tool_result is not None
    assert await replay(path, use) == seen


async def test_two_ways_to_go_on_are_both_there(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    scenario = (
        ScriptBuilder()
        .respond_to_exact("hello", "Hi.")
        .respond_to_exact("left", "You went left.")
        .respond_to_exact("right", "You went right.")
        .build()
    )

    async def use(url: str) -> list[Any]:
        ways = [chat("hello"), chat("hello", "Hi.", "left"), chat("hello", "Hi.", "right")]
        return [told(await post(url, body)) for body in ways]

    seen = await record(scenario, path, use)
    assert seen == [["Hi."], ["You went left."], ["You went right."]]
    assert await replay(path, use) == seen


async def test_a_prompt_that_is_answered_differently_each_time_is_again(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    scenario = (
        ScriptBuilder()
        .respond_to("again", failure={"type": "rate_limit", "retry_after": 1.5}, max_matches=1)
        .respond_to("again", "First.", max_matches=1)
        .respond_to("again", "From now on.")
        .build()
    )

    async def use(url: str) -> list[Any]:
        return [told(await post(url, chat("again"))) for _ in range(4)]

    seen = await record(scenario, path, use)
    assert seen[1:] == [["First."], ["From now on."], ["From now on."]]
    assert await replay(path, use) == seen


FAILURES = [
    "auth_error",
    "overloaded",
    "server_error",
    "html_error",
    "malformed_json",
    "error_in_200",
    "empty_body",
]


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_fails_the_same_again(tmp_path: Path, failure: str) -> None:
    path = tmp_path / "recorded.toml"
    scenario = ScriptBuilder().respond_to_any(failure={"type": failure}).build()

    async def use(url: str) -> Any:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{url}/v1/messages", json=chat("hi"), headers=HEADERS)
        body = re.sub(r'"request_id":"[^"]*"', "", answer.text)
        return answer.status_code, answer.headers["content-type"], body

    seen = await record(scenario, path, use)
    assert await replay(path, use) == seen


@pytest.mark.parametrize("failure", ["stream_cut", "reset_at_token", "missing_end", "error_in_stream"])
async def test_a_stream_that_breaks_breaks_again_after_the_same_text(tmp_path: Path, failure: str) -> None:
    path = tmp_path / "recorded.toml"
    spoilt = {"type": failure}
    scenario = ScriptBuilder().respond_to_any("one two three four five", failure=spoilt).build()

    async def use(url: str) -> Any:
        lines: list[str] = []
        async with (
            httpx2.AsyncClient() as client,
            client.stream(
                "POST",
                f"{url}/v1/messages",
                json=chat("hi", stream=True),
                headers=HEADERS,
            ) as answer,
        ):
            with suppress(httpx2.TransportError):
                async for line in answer.aiter_lines():
                    lines.append(line)  # noqa: PERF401 - what came before the end counts
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        text = "".join(
            event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"
        )
        return text, [event["type"] for event in events][-1]

    seen = await record(scenario, path, use)
    assert await replay(path, use) == seen
    assert (seen[0] == "one two three four five") == (failure == "missing_end")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_that_the_provider_keeps_is_recorded_as_one(
    tmp_path: Path,
    stream: bool,
) -> None:
    path = tmp_path / "recorded.toml"

    def talk(url: str) -> list[str]:
        texts: list[str] = []
        last = None
        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            for prompt in ("login", "me"):
                given: Any = {"model": "gpt-5", "input": prompt, "previous_response_id": last}
                if stream:
                    final: Any = list(client.responses.create(**given, stream=True))[-1]
                    response = final.response
                else:
                    response = client.responses.create(**given)
                texts.append(response.output_text)
                last = response.id
        return texts

    async def use(url: str) -> list[str]:
        return await asyncio.to_thread(talk, url)

    seen = await record(LOGIN, path, use)
    assert seen == ["Who are you?", "And the password?"]
    assert [len(rule.turns) for rule in load_script(path).responses] == [1]
    assert await replay(path, use) == seen


@asynccontextmanager
async def provider_that_says(answer: dict[str, Any]) -> AsyncIterator[str]:
    """Run a provider that is not a simulator: it ignores its requests."""

    async def handle(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(answer)

    server = web.Server(handle)
    async with accept_connections(server, "127.0.0.1", 0) as url:
        yield url
    await server.shutdown(1)


async def test_proofs_that_a_provider_issued_do_not_hinder_recording(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCkYIARgCKkDzprovider"}
    said = {"type": "text", "text": "Hi."}
    body = chat("hello", "", "and?")
    body["messages"][1]["content"] = [thought, said]
    answer = {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [thought, {"type": "text", "text": "That's it."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 6, "server_tool_use": None},
    }
    async with provider_that_says(answer) as provider, serve_proxy(provider, ScriptRecorder(path)) as url:
        assert await post(url, body) == (200, answer)
    response = load_script(path).responses[0].response
    assert response is not None
    assert (response.reasoning, response.text) == ("Hm.", "That's it.")


async def test_what_passes_by_is_not_changed(tmp_path: Path) -> None:
    body = chat("hi", stream=True)
    scenario = ScriptBuilder(seed=5).respond_to_any("Grüß Gott").build()

    async def use(url: str) -> tuple[bytes, dict[str, str]]:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{url}/v1/messages", json=body, headers=HEADERS)
        return answer.content, {
            name: value for name, value in answer.headers.items() if name not in {"date", "server"}
        }

    async with serve_simulator(Simulator(scenario)) as provider:
        direct = await use(provider)
    assert await record(scenario, tmp_path / "recorded.toml", use) == direct


async def test_other_operations_pass_and_are_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"

    async def use(url: str) -> int:
        async with httpx2.AsyncClient() as client:
            return (await client.get(f"{url}/v1/models?key={KEY}")).status_code

    assert await record(LOGIN, path, use) == 200
    assert not path.exists()


async def test_a_provider_out_of_reach_is_recorded_as_such(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    async with serve_simulator(Simulator(LOGIN)) as gone:
        pass
    async with serve_proxy(gone, ScriptRecorder(path)) as url:
        with pytest.raises(httpx2.TransportError):
            await post(url, chat("hi"))
    failure = load_script(path).responses[0].failure
    assert failure is not None
    assert failure.type == "network_unreachable"


def test_a_file_that_could_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match=r"directory .* does not exist"):
        ScriptRecorder(tmp_path / "missing" / "recorded.toml")


async def test_an_answer_is_passed_on_even_if_it_cannot_be_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "soon gone"
    folder.mkdir()
    async with (
        serve_simulator(Simulator(LOGIN)) as provider,
        serve_proxy(provider, ScriptRecorder(folder / "recorded.toml")) as url,
    ):
        folder.rmdir()
        assert told(await post(url, chat("login"))) == ["Who are you?"]


async def test_no_credential_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    other = "AIzaSyCanary0123456789abcdefghijklmnopq"
    echoed = {
        "text": f"Your key is {KEY}.",
        "tool_calls": [{"tool": "call", "input": {"with": [KEY, other]}}],
    }
    scenario = (
        ScriptBuilder(keys=[KEY])
        .respond_to("echo", echoed)
        .respond_to("wrong", failure={"type": "auth_error", "message": f"{KEY} is not valid"})
        .build()
    )

    async def use(url: str) -> list[Any]:
        bodies = [chat(f"echo {other} to me"), chat(f"wrong {KEY}")]
        return [told(await post(url, body)) for body in bodies]

    seen = await record(scenario, path, use)
    assert KEY in str(seen)  # what passes by is not changed
    written = path.read_text(encoding="utf-8")
    assert KEY not in written
    assert other not in written
    assert await replay(path, use) == [
        ["Your key is [redacted].", {"with": ["[redacted]", "[redacted]"]}],
        {**seen[1], "message": "[redacted] is not valid"},
    ]


async def test_the_pace_is_about_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    pace = {"first_token_ms": 50, "tokens_per_second": 100, "tokens_per_chunk": 2}
    text = "one two three four five six seven eight nine ten " * 2
    scenario = ScriptBuilder(pace=pace).respond_to_any(text).build()

    async def use(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            await client.post(f"{url}/v1/messages", json=chat("hi", stream=True), headers=HEADERS)

    await record(scenario, path, use)
    response = load_script(path).responses[0].response
    assert response is not None
    assert response.pace is not None
    assert response.pace.tokens_per_chunk == 2
    assert response.pace.first_token_ms >= 50
    assert 20 < (response.pace.tokens_per_second or 0) < 130


async def test_the_simulator_records_its_own_answers(tmp_path: Path) -> None:
    path = tmp_path / "recorded.toml"
    prompts = ["login", "me", "secret", "what"]
    with Simulator(LOGIN, record=path) as simulator:
        seen = [simulator.execute(prompt) for prompt in prompts]
    rules = load_script(path).responses
    assert [len(rule.turns) for rule in rules] == [3]
    with Simulator(load_script(path)) as again:
        answers = [again.execute(prompt) for prompt in prompts]
    assert [(answer.text, answer.stop, answer.usage) for answer in answers] == [
        (answer.text, answer.stop, answer.usage) for answer in seen
    ]
