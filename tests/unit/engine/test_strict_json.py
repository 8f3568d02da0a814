from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.engine.backend_protocol import EngineError

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


DEEP = 10_000
OUT_OF_RANGE = "an integer must lie within ±9007199254740991 (line 1, column 1)"


@pytest.mark.parametrize(
    ("document", "canonical"),
    [
        (b' {"b" : 1.0 , "a" : [ true , null , "x" ] } ', b'{"a":[true,null,"x"],"b":1}'),
        (b"-0", b"0"),
        (b"1e21", b"1e+21"),
        (b"1e20", b"100000000000000000000"),
        (b"1e-7", b"1e-7"),
        (b"0.000001", b"0.000001"),
        (b"9007199254740991", b"9007199254740991"),
        (b'"\\u00e9\\ud83d\\ude00\\/"', '"é😀/"'.encode()),
        (b'"\\u0000\\u001f\\n\\""', b'"\\u0000\\u001f\\n\\""'),
        ('{"\U0001f600":1,"\ufb33":2,"a":3}'.encode(), '{"a":3,"\U0001f600":1,"\ufb33":2}'.encode()),
    ],
)
def test_accepted_documents_have_one_canonical_form(core: Backend, document: bytes, canonical: bytes) -> None:
    assert core.parse(document) == canonical


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        (b"", "INVALID_JSON", "expected a value (line 1, column 1)"),
        (b"{not json}", "INVALID_JSON", "expected a key in double quotes (line 1, column 2)"),
        (b'{"a":1,}', "INVALID_JSON", "expected a key in double quotes (line 1, column 8)"),
        (b"[1,]", "INVALID_JSON", "expected a value (line 1, column 4)"),
        (b"[1 2]", "INVALID_JSON", "expected ',' or ']' (line 1, column 4)"),
        (b'{"a" 1}', "INVALID_JSON", "expected ':' after the key (line 1, column 6)"),
        (b"01", "INVALID_JSON", "expected the end of the document (line 1, column 2)"),
        (b"NaN", "INVALID_JSON", "expected a value (line 1, column 1)"),
        (b"[Infinity]", "INVALID_JSON", "expected a value (line 1, column 2)"),
        (b'{\n  "a": nul\n}', "INVALID_JSON", "expected a value (line 2, column 8)"),
        ('["é", "x'.encode(), "INVALID_JSON", "the string is never closed (line 1, column 7)"),
        (b'"a\nb"', "INVALID_JSON", "control characters must be escaped in a string (line 1, column 3)"),
        (b'"\\x"', "INVALID_JSON", "unknown escape in a string (line 1, column 2)"),
        (b'{"a":1,"a":2}', "DUPLICATE_KEY", "the key 'a' appears twice in one object (line 1, column 8)"),
        (b'"\\ud800"', "LONE_SURROGATE", "a lone surrogate is not a character (line 1, column 2)"),
        (b'"\\udc00"', "LONE_SURROGATE", "a lone surrogate is not a character (line 1, column 2)"),
        (b'"\\ud800\\u0041"', "LONE_SURROGATE", "a lone surrogate is not a character (line 1, column 2)"),
        (b"1e400", "NUMBER_RANGE", "the number does not fit binary64 (line 1, column 1)"),
        (
            b"9007199254740992",
            "NUMBER_RANGE",
            OUT_OF_RANGE,
        ),
        (
            b"-9007199254740992",
            "NUMBER_RANGE",
            OUT_OF_RANGE,
        ),
        (b'"\xff"', "INVALID_UTF8", "not valid UTF-8 at byte 1"),
        (b"\xed\xa0\x80", "INVALID_UTF8", "not valid UTF-8 at byte 0"),
    ],
)
def test_refused_documents_name_the_first_problem_and_its_place(
    core: Backend,
    document: bytes,
    code: str,
    message: str,
) -> None:
    with pytest.raises(EngineError) as caught:
        core.parse(document)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"[" * DEEP + b"]" * DEEP, "TOO_DEEP"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "TOO_DEEP"),
        (b" " * (1 << 20) + b"1", "DOCUMENT_TOO_LARGE"),
        (b"[" + b"0," * 100_000 + b"0]", "TOO_MANY_NODES"),
        (b'"' + b"a" * 65_537 + b'"', "STRING_TOO_LONG"),
        (b'{"' + b"k" * 257 + b'":1}', "KEY_TOO_LONG"),
    ],
)
def test_limits_hold(core: Backend, document: bytes, code: str) -> None:
    with pytest.raises(EngineError) as caught:
        core.parse(document)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "document",
    [
        b"[" * 64 + b"]" * 64,
        b'"' + b"a" * 65_536 + b'"',
        b'{"' + b"k" * 256 + b'":1}',
        b" " * ((1 << 20) - 1) + b"1",
    ],
)
def test_documents_at_the_limits_are_accepted(core: Backend, document: bytes) -> None:
    assert core.parse(core.parse(document)) == core.parse(document)


def test_huge_input_is_refused_before_it_is_read(core: Backend) -> None:
    with pytest.raises(EngineError) as caught:
        core.parse(b"[" * 50_000_000)
    assert caught.value.code == "DOCUMENT_TOO_LARGE"


def test_a_message_never_repeats_control_characters_of_the_document(core: Backend) -> None:
    with pytest.raises(EngineError) as caught:
        core.parse(b'{"\\u001b[31m":1,"\\u001b[31m":2}')
    assert "\x1b" not in caught.value.message
