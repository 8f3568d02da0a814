"""Hash chain of a transcript, verifiable with the seed, the scenario and the turn records."""

from __future__ import annotations

import hashlib

from peripety.sim._pure.canonical import canonical

__all__ = ["chain", "chain_start"]


def chain_start(seed: int, spec_hash: str) -> str:
    """Return the chain hash before the first turn, in hex: SHA-256 of the canonical `{"seed", "spec_hash"}`.

    Args:
        seed: the seed of the run, 0 … 2^53 - 1.
        spec_hash: `Program.spec_hash`.
    """
    return hashlib.sha256(canonical({"seed": seed, "spec_hash": spec_hash})).hexdigest()


def chain(previous: str, record: bytes) -> str:
    """Return the chain hash after a turn, in hex: SHA-256 of the previous hash, as bytes, and the record.

    Args:
        previous: the chain hash before the turn.
        record: the canonical JSON of the turn.
    """
    return hashlib.sha256(bytes.fromhex(previous) + record).hexdigest()
