"""Prints the gap between a provider's token and the client's chunk; `make bench` shows it."""

from __future__ import annotations

import sys

from bench.first_chunk import report, through_a_turn, through_the_gateway

TOKENS = 10


async def test_gap_through_the_gateway() -> None:
    gaps = await through_the_gateway(TOKENS)
    sys.stdout.write("\n" + report("gateway, Generate", gaps))
    assert len(gaps) == TOKENS


async def test_gap_through_a_turn() -> None:
    gaps = await through_a_turn(TOKENS)
    sys.stdout.write("\n" + report("session, TakeTurn", gaps))
    assert len(gaps) == TOKENS
