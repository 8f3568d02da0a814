from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peripety import engine
from peripety.engine.canonical_json import format_number
from peripety.errors import InvalidArgumentError
from support.engine.specs import document


@pytest.mark.parametrize(
    ("bits", "text"),
    [  # RFC 8785, appendix B
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"),
        (0xFFEFFFFFFFFFFFFF, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xC340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44B52D02C7E14AF5, "9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, "1e+23"),
        (0x44B52D02C7E14AF7, "1.0000000000000001e+23"),
        (0x444B1AE4D6E2EF4E, "999999999999999700000"),
        (0x444B1AE4D6E2EF4F, "999999999999999900000"),
        (0x444B1AE4D6E2EF50, "1e+21"),
        (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"),
        (0x3EB0C6F7A0B5ED8D, "0.000001"),
        (0x41B3DE4355555553, "333333333.3333332"),
        (0x41B3DE4355555557, "333333333.33333343"),
        (0xBECBF647612F3696, "-0.0000033333333333333333"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(bits: int, text: str) -> None:
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    assert format_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_reads_back_as_itself(value: float) -> None:
    assert float(format_number(value)) == value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, {1: 2}, {"a": object()}, "\ud800", b"x"],
)
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        engine.canonicalize(value)


def test_keys_are_sorted_by_utf16_code_units() -> None:
    assert engine.canonicalize({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


@given(st.floats(min_value=2**53, allow_infinity=False))
def test_large_numbers_survive_every_crossing(value: float) -> None:
    assert engine.parse(repr(value)) == value
    assert engine.evaluate({"var": "a"}, {"a": value}) == value


def test_a_document_may_hold_large_floats_and_compile() -> None:
    program = engine.compile(document(state={"a": 1e17}))
    state = program.new_state()
    assert program.load_state(state.to_json()).tree() == {"a": 1e17}
    assert engine.compile_trusted(program.document).spec_hash == program.spec_hash
