"""Prints the gap between the last byte of a test at the model and the test at the client."""

from __future__ import annotations

import sys

from bench.first_test import measured, report

RUNS = 3
TESTS = 4


async def test_gap_through_a_run() -> None:
    figures = await measured(RUNS, TESTS)
    sys.stdout.write("\n" + report(figures))
    assert (len(figures.first), len(figures.all)) == (RUNS, RUNS * TESTS)
