"""The JSON border of both cores on any bytes at all: the same document, or the same first error."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.engine.backend_protocol import EngineError
from support.engine.backends import backend_named
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.backend_protocol import Backend


EXAMPLES = example_count(150, times=4)
thorough = settings(max_examples=EXAMPLES, deadline=None)

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=8)
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.integers(0, 2**64 - 1)
    .map(lambda bits: struct.unpack(">d", bits.to_bytes(8, "big"))[0])
    .filter(lambda value: value - value == 0),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
)
documents = st.tuples(values, st.booleans()).map(
    lambda pair: json.dumps(pair[0], ensure_ascii=pair[1]).encode("utf-8"),
)
# Input on which parsers differ: surrogates, extreme numbers, invalid words, bytes that are not text.
fragments = st.sampled_from(
    [
        *(bytes([byte]) for byte in b'{}[]",:\\ntfu019-+.eE \n\x00\x7f\xff\xc3\xed'),
        *(b"\\u", b"\\ud83d", b"\\ude00", b"\\uDC00", b"\\u0000", b"\\x", b'"a":1,', b"\xf0\x9f\x98\x80"),
        *(b"NaN", b"true", b"null", b"1e400", b"1e-400", b"-0", b"01", b"9007199254740992", b"\xef\xbb\xbf"),
    ],
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A document in which some bytes are missing, and some stand that do not belong there."""
    document = draw(documents)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(document)))
        end = draw(st.integers(start, min(start + 2, len(document))))
        document = document[:start] + draw(st.one_of(st.just(b""), fragments)) + document[end:]
    return document


def verdict(core: Backend, document: bytes) -> bytes | tuple[str, str, str]:
    try:
        return core.parse(document)
    except EngineError as error:
        return (error.code, error.message, error.path)


def assert_same_verdict(document: bytes) -> None:
    assert verdict(backend_named("native"), document) == verdict(backend_named("python"), document)


@thorough
@given(document=documents)
def test_every_value_has_one_canonical_form(document: bytes) -> None:
    assert_same_verdict(document)


@thorough
@given(document=damaged())
def test_damaged_documents_have_the_same_first_error(document: bytes) -> None:
    assert_same_verdict(document)


@thorough
@given(document=st.binary(max_size=24))
def test_any_bytes_get_the_same_verdict(document: bytes) -> None:
    assert_same_verdict(document)


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize(
    "limit",
    [
        lambda extra: b" " * ((1 << 20) - 1 + extra) + b"0",
        lambda extra: b"[" * (64 + extra) + b"]" * (64 + extra),
        lambda extra: b"[" + b"0," * (99_998 + extra) + b"0]",
        lambda extra: b'"' + b"a" * ((1 << 16) - 2 + extra) + "é".encode() + b'"',
        lambda extra: b'{"' + b"a" * (254 + extra) + "é".encode() + b'":0}',
        lambda extra: str(2**53 - 1 + extra).encode(),
        lambda extra: b"1.7976931348623157e30" + str(8 + extra).encode(),
    ],
    ids=["bytes", "depth", "values", "string", "key", "integer", "float"],
)
def test_both_cores_draw_each_limit_at_the_same_place(limit: Callable[[int], bytes], extra: int) -> None:
    document = limit(extra)
    assert isinstance(verdict(backend_named("python"), document), bytes) == (extra == 0)
    assert_same_verdict(document)
