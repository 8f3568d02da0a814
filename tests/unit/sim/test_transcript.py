from __future__ import annotations

import hashlib

from peripety import sim


def test_the_chain_starts_from_seed_and_scenario_and_covers_every_turn_before() -> None:
    start = sim.chain_start(7, "ab")
    assert start == hashlib.sha256(b'{"seed":7,"spec_hash":"ab"}').hexdigest()
    first = sim.chain(start, b'{"turn":1}')
    assert first == hashlib.sha256(bytes.fromhex(start) + b'{"turn":1}').hexdigest()
    assert sim.chain(sim.chain_start(8, "ab"), b'{"turn":1}') != first
