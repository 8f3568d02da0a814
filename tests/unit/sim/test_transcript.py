from __future__ import annotations

import hashlib

from peripety import engine


def test_the_chain_starts_from_seed_and_scenario_and_covers_every_turn_before() -> None:
    start = engine.start_hash_chain(7, "ab")
    assert start == hashlib.sha256(b'{"seed":7,"spec_hash":"ab"}').hexdigest()
    first = engine.extend_hash_chain(start, b'{"turn":1}')
    assert first == hashlib.sha256(bytes.fromhex(start) + b'{"turn":1}').hexdigest()
    assert engine.extend_hash_chain(engine.start_hash_chain(8, "ab"), b'{"turn":1}') != first
