"""Processes killed at any moment while they commit groups."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from support.examples import example_count
from support.servers.processes import found
from support.session.crash import WRITERS, killing

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow(reason="kills processes at many points")

_LIVES = 50  # of a file
_FILES = example_count(200, times=1 / _LIVES)
_REPORTS = 2 * WRITERS  # of up to three groups
_SECONDS = 0.004  # a group takes about as long


@pytest.mark.parametrize("seed", range(_FILES))
def test_a_process_killed_amid_groups_loses_no_block_it_acknowledged_and_leaves_no_half(
    tmp_path: Path,
    seed: int,
) -> None:
    rng, path = random.Random(seed), tmp_path / "test.db"
    before: set[int] = set()
    with killing() as kill:
        for _ in range(_LIVES):
            reported = kill(f"sqlite:///{path}", rng.randrange(1, _REPORTS), rng.uniform(0, _SECONDS))
            after = found(path)
            assert before | set(reported) <= after
            # Each adds what comes next, so one that was lost before another that was not would show.
            assert after == set(range(len(after)))
            # Some processes died after a commit and before its report.
            assert len(after) - len(before) - len(reported) <= WRITERS
            before = after
