"""Failures as a client sees them on its socket."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import Fault, Script, ScriptResponse, ScriptRule
from support.gateway.fake_server import prompt
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.llmsim.simulator import Served


TEXT = "one two three four €"
SETTINGS: dict[str, dict[str, Any]] = {
    "connection_timeout": {"after_ms": 60},
    "stall": {"for_ms": 120},
    "slow_drip": {"ms_per_chunk": 30},
    "late_usage": {"delay_ms": 120},
}
ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass(frozen=True)
class Seen:
    """Received bytes, the ending (`normalize_text`, `closed`, `reset`, `silent`), and the duration."""

    head: bytes
    body: bytes
    end: str
    seconds: float


def rule(kind: str) -> ScriptRule:
    failure = Fault(kind, {**KINDS[kind].default_settings, **SETTINGS.get(kind, {})})
    return ScriptRule(Pattern(TextPattern(TextKind.EXACT, kind)), ScriptResponse(TEXT), failure)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    usual = ScriptRule(Pattern(), ScriptResponse(TEXT))
    with served(Script((*map(rule, KINDS), usual))) as server:
        yield server


def ask(server: Served, kind: str, *, stream: bool, patience: float = 60) -> Seen:
    options = {"stream_options": {"include_usage": True}} if stream else {}
    body = json.dumps(prompt(kind, stream=stream, **options)).encode()
    begun = time.monotonic()
    data = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=patience) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body),
        )
        end = ""
        while not end:
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                end = "silent"
            except ConnectionResetError:
                end = "reset"
            else:
                data += piece
                head, _, rest = data.partition(b"\r\n\r\n")
                if complete(head, rest):
                    end = "clean"
                elif not piece:
                    end = "closed"
    head, _, rest = data.partition(b"\r\n\r\n")
    return Seen(head, rest, end, time.monotonic() - begun)


def complete(head: bytes, rest: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return rest.endswith(b"0\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"content-length: ")]
    return bool(lengths) and len(rest) == int(lengths[0].split()[1])


@ways
def test_nothing_arrives_from_a_network_that_is_unreachable(server: Served, stream: bool) -> None:
    seen = ask(server, "network_unreachable", stream=stream)
    assert (seen.head, seen.end) == (b"", "reset")


@ways
def test_a_connection_that_times_out_is_closed_after_its_time(server: Served, stream: bool) -> None:
    seen = ask(server, "connection_timeout", stream=stream)
    assert (seen.head, seen.end) == (b"", "closed")
    assert seen.seconds >= 0.06


@ways
def test_a_hang_is_silent_for_as_long_as_anybody_waits(server: Served, stream: bool) -> None:
    seen = ask(server, "hang", stream=stream, patience=0.2)
    assert (seen.head, seen.end) == (b"", "silent")


@ways
def test_the_headers_come_before_a_reset(server: Served, stream: bool) -> None:
    seen = ask(server, "connection_reset", stream=stream)
    assert seen.head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (seen.body, seen.end) == (b"", "reset")


@ways
@pytest.mark.parametrize(
    ("kind", "end"),
    [("stream_cut", "closed"), ("partial_response", "closed"), ("reset_at_token", "reset")],
)
def test_an_answer_that_breaks_off_does_so_as_its_kind_says(
    server: Served,
    kind: str,
    end: str,
    stream: bool,
) -> None:
    seen = ask(server, kind, stream=stream)
    assert seen.head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert seen.body
    assert seen.end == end


@ways
@pytest.mark.parametrize("kind", ["stall", "slow_drip", "late_usage"])
def test_what_is_late_is_late_and_whole(server: Served, kind: str, stream: bool) -> None:
    seen = ask(server, kind, stream=stream)
    assert seen.seconds >= 0.1
    assert seen.end == "clean"
    assert b"[DONE]" in seen.body or json.loads(seen.body)


@ways
@pytest.mark.parametrize(
    "kind",
    ["empty_body", "malformed_json", "html_error", "error_in_200", "missing_end", "missing_usage"],
)
def test_what_is_wrong_with_the_body_is_wrong_with_a_connection_that_is_well(
    server: Served,
    kind: str,
    stream: bool,
) -> None:
    seen, usual = (ask(server, each, stream=stream) for each in (kind, "as usual"))
    assert seen.end == usual.end == "clean"
    assert len(seen.body) != len(usual.body)


def test_an_error_ends_a_stream_in_order(server: Served) -> None:
    seen = ask(server, "error_in_stream", stream=True)
    assert seen.end == "clean"
    assert b'"Overloaded"' in seen.body
    assert b"[DONE]" not in seen.body


def test_a_character_is_cut_between_two_chunks(server: Served) -> None:
    seen = ask(server, "split_utf8", stream=True)
    euro = "€".encode()
    assert euro not in seen.body
    assert euro[:1] + b"\r\n" in seen.body


@ways
def test_a_failure_of_one_request_is_none_of_the_next(server: Served, stream: bool) -> None:
    for kind in KINDS:
        if kind != "hang":
            ask(server, kind, stream=stream)
        assert ask(server, "as usual", stream=stream).end == "clean"
