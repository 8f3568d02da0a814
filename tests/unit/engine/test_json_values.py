"""Canonical JSON as Python values: what is an int, and what a float."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from peripety import engine
from peripety.engine.json_values import loads


def test_the_chain_starts_from_seed_and_scenario_and_covers_every_turn_before() -> None:
    start = engine.start_hash_chain(7, "ab")
    assert start == hashlib.sha256(b'{"seed":7,"spec_hash":"ab"}').hexdigest()
    first = engine.extend_hash_chain(start, b'{"turn":1}')
    assert first == hashlib.sha256(bytes.fromhex(start) + b'{"turn":1}').hexdigest()
    assert engine.extend_hash_chain(engine.start_hash_chain(8, "ab"), b'{"turn":1}') != first


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"9007199254740991", 9007199254740991),
        (b"-9007199254740991", -9007199254740991),
        (b"9007199254740992", 9007199254740992.0),
        (b"-9007199254740992", -9007199254740992.0),
        (b"[100000000000000000000]", [1e20]),
        (b"0.30000000000000004", 0.30000000000000004),
        (b"123456.12345678901", 123456.12345678901),
        (
            b'{"a":0.12345678901234568,"b":9007199254740993}',
            {"a": 0.12345678901234568, "b": 9007199254740992.0},
        ),
        (b'"99999999999999999"', "99999999999999999"),
        (b'"' + b"9" * 10_000 + b'"', "9" * 10_000),
        (b'".' + b"9" * 10_000 + b'"', "." + "9" * 10_000),
    ],
)
def test_only_safe_integers_are_ints(text: bytes, value: Any) -> None:
    read = loads(text)
    assert read == value
    assert type(read) is type(value)
