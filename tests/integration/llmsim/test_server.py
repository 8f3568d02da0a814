"""The server as clients see it: any request gets its provider's own answer, and never blocks others."""

from __future__ import annotations

import gzip
import io
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core import logging_setup
from peripety.core.config import Config
from peripety.errors import UnavailableError
from peripety.llmsim.capture import FailedOutcome
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.types import Api
from support.gateway.fake_server import prompt, send
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.llmsim.simulator import Served


SCENARIO = """
[[responses]]
pattern = { type = "contains", text = "slow" }
response = { text = "one two three four five six seven eight", pace = { tokens_per_second = 0.002 } }

[[responses]]
pattern = { type = "contains", text = "silence" }
failure = { type = "hang" }

[[responses]]
pattern = { type = "any" }
response = "hello"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(SCENARIO) as server:
        yield server


def ask(
    server: Served,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """The status, and the body as JSON."""
    response = send(server.url, method, path, body, headers)
    assert response.headers["content-type"].startswith("application/json")
    return response.status, response.json


def chat(text: str, **more: Any) -> bytes:
    return json.dumps(prompt(text, **more)).encode()


def is_openai(body: Any) -> bool:
    return set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}


def is_anthropic(body: Any) -> bool:
    return body["type"] == "error" and set(body["error"]) >= {"type", "message"} and "request_id" in body


def is_gemini(body: Any) -> bool:
    return set(body["error"]) >= {"code", "message", "status"}


def is_ollama(body: Any) -> bool:
    return isinstance(body["error"], str)


OPENAI = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ANTHROPIC = "/v1/messages"
GEMINI = "/v1beta/models/gemini-3.1-pro:generateContent"
OLLAMA = "/api/chat"

SHAPES = {
    OPENAI: is_openai,
    RESPONSES: is_openai,
    ANTHROPIC: is_anthropic,
    GEMINI: is_gemini,
    OLLAMA: is_ollama,
}

NO_BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "cut off": b'{"model": "m", "messages": [',
    "a number": b"1",
    "null": b"null",
    "an array": b"[]",
    "a text": b'"x"',
    "empty": b"{}",
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "half of a surrogate pair": b'{"model": "\\ud800", "messages": [{"role": "user", "content": "\\udfff"}]}',
    "a number without end": b'{"model": 1e999}',
    "no number": b'{"model": NaN}',
    "deeply nested": b"[" * 100_000,
    "deeply nested inside": b'{"messages":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    "control characters": b'{"model": "\x00\x01"}',
    "wrong types": b'{"model": 1, "messages": "x", "contents": 7, "input": 5, "stream": "no", "tools": 0}',
    "wrong types within": (
        b'{"model": "m", "max_tokens": 9, "messages": [7], "contents": [null], "input": [[]], "tools": [0]}'
    ),
    "a key twice": b'{"model": "m", "model": "n"}',
}


@pytest.mark.parametrize("path", SHAPES)
@pytest.mark.parametrize("body", NO_BODIES.values(), ids=NO_BODIES)
def test_bodies_that_are_no_requests_are_refused_in_the_providers_shape(
    server: Served,
    path: str,
    body: bytes,
) -> None:
    status, answer = ask(server, "POST", path, body)
    assert 400 <= status < 500
    assert SHAPES[path](answer)


def test_a_request_that_is_refused_as_not_valid_is_captured(server: Served) -> None:
    before = len(server.simulator.captured)
    ask(server, "POST", "/v1/messages", b"{}", {"x-api-key": "secret"})
    assert len(server.simulator.captured) == before + 1
    (call,) = server.simulator.captured.last()
    assert call.request.api is Api.ANTHROPIC
    assert call.outcome == FailedOutcome("invalid_request", "anthropic-version: header is required")


@pytest.mark.parametrize("path", SHAPES)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_in_the_providers_shape(server: Served, path: str, method: str) -> None:
    status, answer = ask(server, method, path)
    assert status in {404, 405}
    assert SHAPES[path](answer)


@pytest.mark.parametrize(
    ("path", "headers", "is_shape"),
    [
        ("/v1/chat/nothing", {}, is_openai),
        ("/v1/messages/nothing", {}, is_anthropic),
        ("/v9", {"anthropic-version": "2023-06-01"}, is_anthropic),
        ("/v1beta/nothing", {}, is_gemini),
        ("/v1/nothing", {"x-goog-api-key": "k"}, is_gemini),
        ("/api/nothing", {}, is_ollama),
        ("/%ff%fe", {}, is_openai),
        ("/" + "a" * 5000, {}, is_openai),
        ("//v1/messages", {"x-api-key": "k"}, is_anthropic),
    ],
)
def test_unknown_paths_are_refused_in_the_likeliest_providers_shape(
    server: Served,
    path: str,
    headers: dict[str, str],
    is_shape: Any,
) -> None:
    status, answer = ask(server, "POST", path, b"{}", headers)
    assert status == 404
    assert is_shape(answer)


def test_a_shared_path_is_answered_by_whoever_takes_the_method(server: Served) -> None:
    status, answer = ask(server, "DELETE", "/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert status in {404, 405}
    assert is_anthropic(answer)


@pytest.mark.parametrize(
    "request_line",
    [
        b"POST /v1/messages\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"BREW /v1/messages HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    ],
)
def test_what_is_no_http_is_refused_and_harms_nobody(
    server: Served,
    request_line: bytes,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request_line)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while received := connection.recv(65536):
            answer += received
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
    assert b"Traceback" not in answer
    assert "Traceback" not in "".join(capfd.readouterr())
    assert ask(server, "POST", OPENAI, chat("hi"))[0] == 200


def test_headers_that_are_no_text_harm_nobody(server: Served) -> None:
    headers = {"authorization": "Bearer \xff\xfe", "x-peripety-conversation": "\xc3\x28"}
    assert ask(server, "POST", OPENAI, chat("hi"), headers)[0] == 200
    assert ask(server, "GET", "/_simulator/calls")[0] == 200


@pytest.mark.slow_after(1, reason="sends fifty megabytes")
@pytest.mark.parametrize(("path", "more"), [(OPENAI, {}), (ANTHROPIC, {"max_tokens": 10})])
def test_a_prompt_of_fifty_megabytes_gets_the_providers_answer(
    server: Served,
    path: str,
    more: dict[str, Any],
) -> None:
    status, answer = ask(server, "POST", path, chat("x" * 50_000_000, **more))
    assert status in {200, 400, 413}
    assert status == 200 or SHAPES[path](answer)


@pytest.mark.parametrize("path", SHAPES)
def test_a_body_that_is_too_large_is_refused_without_being_read(server: Served, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head.encode())
        status_line, _, rest = connection.recv(65536).partition(b"\r\n")
    assert int(status_line.split()[1]) in {400, 413}
    assert SHAPES[path](json.loads(rest.partition(b"\r\n\r\n")[2]))


def test_a_client_may_ask_before_it_sends_its_body(server: Served) -> None:
    body = chat("hi")
    head = f"POST {OPENAI} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_compressed_body_is_read(server: Served) -> None:
    headers = {"content-encoding": "gzip"}
    assert ask(server, "POST", OPENAI, gzip.compress(chat("hi")), headers)[0] == 200


def test_requests_that_never_end_hold_nobody_up(server: Served) -> None:
    halves = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    try:
        for number, half in enumerate(halves):
            half.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"[: 5 + number])
        assert ask(server, "POST", OPENAI, chat("hi"))[0] == 200
    finally:
        for half in halves:
            half.close()


def test_silent_and_slow_answers_hold_nobody_up(server: Served) -> None:
    waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    try:
        for number, connection in enumerate(waiting):
            body = chat("silence" if number % 2 else "slow", stream=True)
            head = f"POST {OPENAI} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
        assert ask(server, "POST", OPENAI, chat("hi"))[0] == 200
    finally:
        for connection in waiting:
            connection.close()


def test_many_connections_at_once_are_all_answered(server: Served) -> None:
    with ThreadPoolExecutor(64) as threads:
        answers = list(
            threads.map(lambda number: ask(server, "POST", OPENAI, chat(f"hi {number}")), range(500)),
        )
    assert {status for status, _ in answers} == {200}


def open_stream(server: Served, text: str) -> socket.socket:
    """Request a stream, and read the beginning of it."""
    body = chat(text, stream=True)
    head = f"POST {OPENAI} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(head.encode() + body)
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    return connection


def test_a_stream_counts_as_under_way_until_its_client_leaves() -> None:
    with served(SCENARIO + "\n[[limits]]\nconcurrency = 1\n") as server:
        with open_stream(server, "slow"):
            for _ in range(3):
                assert ask(server, "POST", OPENAI, chat("hi"))[0] == 429
        until = time.monotonic() + 60  # the stream itself would take more than an hour
        while ask(server, "POST", OPENAI, chat("hi"))[0] != 200:
            assert time.monotonic() < until


@pytest.mark.parametrize(
    ("path", "body", "prefix"),
    [
        ("/v1/messages", {"model": "m", "max_tokens": 9}, "anthropic-ratelimit-requests-"),
        ("/v1/chat/completions", {"model": "m"}, "x-ratelimit-"),
    ],
)
def test_a_request_that_a_limit_refuses_is_told_what_is_left(
    path: str,
    body: dict[str, Any],
    prefix: str,
) -> None:
    body |= {"messages": [{"role": "user", "content": "hello"}]}
    with served(SCENARIO + "\n[[limits]]\nrequests_per_minute = 1\n") as server:
        answers = [
            send(server.url, "POST", path, body, {"anthropic-version": "2023-06-01"}) for _ in range(2)
        ]
    assert [answer.status for answer in answers] == [200, 429]
    told = [
        {name: value for name, value in answer.headers.items() if name.startswith(prefix)}
        for answer in answers
    ]
    assert told[0]
    assert told[0] == told[1]


def test_closing_cuts_answers_under_way() -> None:
    with served(SCENARIO) as server:
        connection = open_stream(server, "slow")
    with connection:
        while received := connection.recv(65536):
            assert not received.endswith(b"0\r\n\r\n")


def test_an_address_that_is_taken_is_an_error(server: Served) -> None:
    with pytest.raises(UnavailableError, match=f"127.0.0.1:{server.port}"):
        serve_in_thread(server.simulator, port=server.port)


def test_a_defect_of_ours_is_told_as_the_providers_and_not_logged_with_the_request(
    server: Served,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    logging_setup.configure(Config(), written)

    def fail(request: Any) -> None:
        raise RuntimeError(f"secret: {request.key}")

    monkeypatch.setattr(server.simulator, "begin", fail)
    for path, more in ((OPENAI, {}), (ANTHROPIC, {"max_tokens": 10})):
        headers = {"authorization": "Bearer sk-1", "anthropic-version": "2023-06-01"}
        status, answer = ask(server, "POST", path, chat("private words", **more), headers)
        assert status == 500
        assert SHAPES[path](answer)
        assert "secret" not in str(answer)
    logged = written.getvalue()
    assert "request failed" in logged
    assert "sk-1" not in logged
    assert "private words" not in logged
