"""The endpoints under `/_simulator/`: what a test elsewhere sees of the simulator, and does to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.server.connection import MAX_BODY
from support.gateway.fake_server import prompt, send
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.llmsim.simulator import Served


SCENARIO = """
start = 2026-03-01T00:00:00Z

[[responses]]
pattern = { type = "contains", text = "hello" }
response = "Hello!"
max_matches = 1
"""


@pytest.fixture
def server() -> Iterator[Served]:
    with served(SCENARIO) as server:
        yield server


def call(server: Served, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    response = send(server.url, method, path, body, {"authorization": "Bearer sk-secret"})
    return response.status, response.json


def hello(server: Served) -> int:
    return call(server, "POST", "/v1/chat/completions", prompt("hello"))[0]


def test_a_server_that_answers_is_healthy(server: Served) -> None:
    assert call(server, "GET", "/_simulator/health") == (200, {"status": "ok"})


def test_calls_are_listed_without_their_keys(server: Served) -> None:
    hello(server)
    status, answer = call(server, "GET", "/_simulator/calls")
    assert status == 200
    (captured,) = answer["calls"]
    assert captured["request"]["prompt"] == "hello"
    assert captured["outcome"]["text"] == "Hello!"
    assert "sk-secret" not in json.dumps(answer)


def test_the_state_tells_who_owes_what(server: Served) -> None:
    hello(server)
    _, answer = call(server, "GET", "/_simulator/state")
    (bill,) = answer["bills"]
    assert (bill["model"], bill["requests"]) == ("gpt-6", 1)
    assert bill["usage"]["output"] == 2
    assert answer["entries"]["conversations"] > 0
    assert answer["now"] == 1772323200.0
    assert "sk-secret" not in json.dumps(answer)


def test_a_reset_forgets_everything(server: Served) -> None:
    assert [hello(server), hello(server)] == [200, 400]
    assert call(server, "POST", "/_simulator/reset")[0] == 200
    assert hello(server) == 200
    assert len(server.simulator.captured) == 1


def test_the_clock_is_moved(server: Served) -> None:
    before = server.simulator.now()
    assert call(server, "POST", "/_simulator/clock", {"advance": 90.5}) == (200, {"now": before + 90.5})
    assert server.simulator.now() == before + 90.5


def test_a_real_clock_is_not_moved() -> None:
    with served('clock = "real"\ndefault_response = "x"') as server:
        status, answer = call(server, "POST", "/_simulator/clock", {"advance": 1})
    assert status == 409
    assert "clock" in answer["error"]["message"]


def test_a_failure_is_injected_for_the_next_requests(server: Served) -> None:
    assert call(server, "POST", "/_simulator/fail", {"type": "overloaded", "times": 2})[0] == 200
    assert [hello(server) for _ in range(3)] == [503, 503, 200]


def test_a_scenario_without_a_file_cannot_be_read_again(server: Served) -> None:
    status, answer = call(server, "POST", "/_simulator/reload")
    assert status == 409
    assert "file" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/_simulator/nothing", None, 404, "GET calls"),
        ("PUT", "/_simulator/reset", None, 404, "POST reset"),
        ("POST", "/_simulator/clock", {}, 400, "advance"),
        ("POST", "/_simulator/clock", {"advance": "1"}, 400, "advance"),
        ("POST", "/_simulator/clock", {"advance": True}, 400, "advance"),
        ("POST", "/_simulator/clock", {"advance": 1, "set": 2}, 400, "advance"),
        ("POST", "/_simulator/clock", b"{", 400, "JSON"),
        ("POST", "/_simulator/clock", b"[]", 400, "object"),
        ("POST", "/_simulator/clock", b" " * (MAX_BODY + 1), 400, "exceeds the limit"),
        ("POST", "/_simulator/fail", {"type": "nothing"}, 400, "nothing"),
        ("POST", "/_simulator/fail", {"type": "rate_limit", "after": 1}, 400, "after"),
    ],
)
def test_what_cannot_be_done_is_explained(
    server: Served,
    method: str,
    path: str,
    body: Any,
    status: int,
    reason: str,
) -> None:
    answered, answer = call(server, method, path, body)
    assert answered == status
    assert reason in answer["error"]["message"]


def test_calls_are_listed_from_a_number_on_and_the_last_ones_of_them(server: Served) -> None:
    for _ in range(3):
        hello(server)

    def numbers(query: str) -> list[int]:
        return [one["number"] for one in call(server, "GET", f"/_simulator/calls{query}")[1]["calls"]]

    assert numbers("?after=1") == [2, 3]
    assert numbers("?last=1") == [3]
    assert numbers("?after=3") == []
    # The log of a server that was started again has fewer calls than its reader has seen.
    assert numbers("?after=9") == [1, 2, 3]
    status, answer = call(server, "GET", "/_simulator/calls?after=x")
    assert (status, "after" in answer["error"]["message"]) == (400, True)
