from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety.errors import UnavailableError
from peripety.gateway.providers.stream_framing import NdjsonDecoder

OBJECTS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3))


def decode(*chunks: bytes) -> list[dict[str, Any]]:
    decoder = NdjsonDecoder()
    return [json.loads(line) for chunk in chunks for line in decoder.feed(chunk)]


@given(OBJECTS, st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n"]), st.integers(1, 7))
def test_the_chunking_of_the_network_changes_nothing(
    objects: list[dict[str, Any]],
    end: str,
    size: int,
) -> None:
    data = "".join(json.dumps(one, ensure_ascii=False) + end for one in objects).encode("utf-8", "replace")
    assert decode(*(data[start : start + size] for start in range(0, len(data), size))) == objects


def test_a_line_is_handed_out_with_its_line_feed_and_not_a_byte_later() -> None:
    decoder = NdjsonDecoder()
    assert decoder.feed(b'{"a": 1}') == []
    assert decoder.feed(b"\n") == ['{"a": 1}']


def test_what_arrives_together_is_handed_out_together() -> None:
    assert NdjsonDecoder().feed(b'{"a": 1}\n{"a": 2}\n{"a"') == ['{"a": 1}', '{"a": 2}']


def test_a_line_that_the_end_cuts_off_is_not_handed_out() -> None:
    assert decode(b'{"a": 1}\n{"a": 2}') == [{"a": 1}]


def test_a_line_that_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(UnavailableError) as caught:
        decode(b'{"a": "\xff"}\n')
    assert caught.value.code == "STREAM_MALFORMED"


def test_a_line_without_end_cannot_fill_the_memory() -> None:
    decoder = NdjsonDecoder(max_event_bytes=64)
    decoder.feed(b" " * 64)
    with pytest.raises(UnavailableError):
        decoder.feed(b" ")
