"""Canonical JSON as Python values: the same numbers, whoever reads them."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.sim._pure.canonical import canonical
from peripety.sim._values import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"[9007199254740991,-9007199254740991]", [2**53 - 1, 1 - 2**53]),
        (b"9007199254740992", 2.0**53),
        (b'{"a":[100000000000000000000,0.5]}', {"a": [1e20, 0.5]}),
        (b"[1,0.1,1e+21,5e-324,1.7976931348623157e+308]", [1, 0.1, 1e21, 5e-324, 1.7976931348623157e308]),
        (
            b'["1234567890123456789",true,null,"\\u0001\\"\xc3\xa9"]',
            ["1234567890123456789", True, None, '\x01"é'],
        ),
    ],
)
def test_a_number_is_an_int_when_it_is_a_safe_integer_and_else_a_float(text: bytes, value: Any) -> None:
    read = loads(text)
    assert read == value
    assert repr(read) == repr(value)
    assert canonical(read) == text


def test_the_deepest_result_can_be_read() -> None:
    assert canonical(loads(b"[" * 80 + b"]" * 80)) == b"[" * 80 + b"]" * 80
