from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.errors import UnavailableError
from peripety.gateway.providers.stream_framing import NdjsonDecoder, ServerSentEvent, SseDecoder

OBJECTS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3))


def decode_ndjson(*chunks: bytes) -> list[dict[str, Any]]:
    decoder = NdjsonDecoder()
    return [json.loads(line) for chunk in chunks for line in decoder.feed(chunk)]


@given(OBJECTS, st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n"]), st.integers(1, 7))
def test_network_chunks_do_not_change_ndjson_lines(
    objects: list[dict[str, Any]],
    end: str,
    size: int,
) -> None:
    data = "".join(json.dumps(one, ensure_ascii=False) + end for one in objects).encode("utf-8", "replace")
    assert decode_ndjson(*(data[start : start + size] for start in range(0, len(data), size))) == objects


def test_a_line_is_handed_out_with_its_line_feed_and_not_a_byte_later() -> None:
    decoder = NdjsonDecoder()
    assert decoder.feed(b'{"a": 1}') == []
    assert decoder.feed(b"\n") == ['{"a": 1}']


def test_what_arrives_together_is_handed_out_together() -> None:
    assert NdjsonDecoder().feed(b'{"a": 1}\n{"a": 2}\n{"a"') == ['{"a": 1}', '{"a": 2}']


def test_a_line_that_the_end_cuts_off_is_not_handed_out() -> None:
    assert decode_ndjson(b'{"a": 1}\n{"a": 2}') == [{"a": 1}]


def test_a_line_that_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(UnavailableError) as caught:
        decode_ndjson(b'{"a": "\xff"}\n')
    assert caught.value.code == "STREAM_MALFORMED"


def test_a_line_without_end_cannot_fill_the_memory() -> None:
    decoder = NdjsonDecoder(max_event_bytes=64)
    decoder.feed(b" " * 64)
    with pytest.raises(UnavailableError):
        decoder.feed(b" ")


def decode_sse(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [*sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def expected(text: str) -> list[ServerSentEvent]:
    """Parse the whole text by the standard, as simply as possible."""
    events: list[ServerSentEvent] = []
    data: list[str] = []
    kind = ""
    for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))[:-1]:
        name, _, value = line.partition(":")
        if line == "":
            if data:
                events.append(ServerSentEvent(kind or "message", "\n".join(data)))
            data, kind = [], ""
        elif name == "data":
            data.append(value.removeprefix(" "))
        elif name == "event":
            kind = value.removeprefix(" ")
    return events


PIECES = st.sampled_from(
    [
        "data",
        "event",
        ":",
        ": ",
        " ",
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "a",
        "é",
        "😀",
        "\u2028",
        "\x85",
        "data: x\n\n",
        "id: 1",
    ],
)
STREAMS = st.lists(PIECES, max_size=30).map("".join)


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=8))
def test_network_chunks_do_not_change_sse_events(text: str, places: list[int]) -> None:
    assert decode_sse(*cut(text.encode(), places)) == expected(text)


@given(STREAMS)
def test_single_bytes_are_enough(text: str) -> None:
    assert decode_sse(*(bytes([byte]) for byte in text.encode())) == expected(text)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_handed_out_with_its_blank_line_and_not_a_byte_later(end: bytes) -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a" + end) == []
    assert decoder.feed(end[:1]) == [ServerSentEvent("message", "a")]


def test_line_separators_of_unicode_are_text() -> None:
    assert decode_sse("data: a\u2028b\x85c\n\n".encode()) == [ServerSentEvent("message", "a\u2028b\x85c")]


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert decode_sse(b": keep-alive\n\nretry: 3\nid: 7\ndata: a\ndata: b\n\n") == [
        ServerSentEvent("message", "a\nb"),
    ]


def test_an_event_that_the_end_cuts_off_is_not_handed_out() -> None:
    assert decode_sse(b"data: whole\n\ndata: half\n") == [ServerSentEvent("message", "whole")]


def test_bytes_that_are_not_utf8_are_an_error() -> None:
    with pytest.raises(UnavailableError) as caught:
        decode_sse(b"data: \xff\n\n")
    assert caught.value.code == "STREAM_MALFORMED"


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 100, b"data: xxxx\n" * 10])
def test_an_event_without_end_cannot_fill_the_memory(chunk: bytes) -> None:
    decoder = SseDecoder(max_event_bytes=64)
    with pytest.raises(UnavailableError):
        decoder.feed(chunk)


def test_long_comments_do_not_count_towards_an_event() -> None:
    decoder = SseDecoder(max_event_bytes=64)
    for _ in range(10):
        decoder.feed(b": " + b"x" * 50 + b"\n")
    assert decoder.feed(b"data: a\n\n") == [ServerSentEvent("message", "a")]
