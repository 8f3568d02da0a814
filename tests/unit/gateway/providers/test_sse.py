from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.errors import UnavailableError
from peripety.gateway.providers.stream_framing import ServerSentEvent, SseDecoder


def decode(*chunks: bytes) -> list[ServerSentEvent]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [*sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def expected(text: str) -> list[ServerSentEvent]:
    """What the standard says about the whole text, written down as plainly as possible."""
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
def test_the_chunking_of_the_network_changes_nothing(text: str, places: list[int]) -> None:
    assert decode(*cut(text.encode(), places)) == expected(text)


@given(STREAMS)
def test_single_bytes_are_enough(text: str) -> None:
    assert decode(*(bytes([byte]) for byte in text.encode())) == expected(text)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_handed_out_with_its_blank_line_and_not_a_byte_later(end: bytes) -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a" + end) == []
    assert decoder.feed(end[:1]) == [ServerSentEvent("message", "a")]


def test_line_separators_of_unicode_are_text() -> None:
    assert decode("data: a\u2028b\x85c\n\n".encode()) == [ServerSentEvent("message", "a\u2028b\x85c")]


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert decode(b": keep-alive\n\nretry: 3\nid: 7\ndata: a\ndata: b\n\n") == [
        ServerSentEvent("message", "a\nb"),
    ]


def test_an_event_that_the_end_cuts_off_is_not_handed_out() -> None:
    assert decode(b"data: whole\n\ndata: half\n") == [ServerSentEvent("message", "whole")]


def test_bytes_that_are_not_utf8_are_an_error() -> None:
    with pytest.raises(UnavailableError) as caught:
        decode(b"data: \xff\n\n")
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
