"""Parts on a Dask cluster of processes, one of which is killed while it works."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from distributed import Client, LocalCluster

from peripety.certification.options import DryRunOptions
from peripety.scenario.batch import BatchOptions
from peripety.scenario.batch.on_dask import validate_parts
from peripety.scenario.batch.partitions import JobOutput, split_inputs
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.engine.specs import document
from support.servers.processes import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.scenario.batch.partitions import InputSplit


pytestmark = pytest.mark.slow(reason="starts a cluster")


DOCUMENTS = 48
OPTIONS = BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=256))


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=0,
    ) as cluster:
        yield cluster


@pytest.fixture
def parts(tmp_path: Path) -> list[InputSplit]:
    file = tmp_path / "in.jsonl"
    file.write_bytes(
        b"\n".join(
            generate_spec(9, index) if index % 7 else document(seed="seven") for index in range(DOCUMENTS)
        ),
    )
    return list(split_inputs([file], documents=4))


def rows(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("part-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def kill_whoever_writes(folder: Path) -> int:
    """Kill the process that is in the middle of a part, without a chance to clean up."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for begun in folder.glob(".part-*.tmp"):
            pid = int(re.findall(r"\.(\d+)\.", begun.name)[-1])
            os.kill(pid, signal.SIGKILL)
            return pid
        time.sleep(0.005)
    pytest.fail("nobody began a part")


def test_a_worker_that_is_killed_costs_no_document_and_doubles_none(
    cluster: LocalCluster,
    parts: list[InputSplit],
    tmp_path: Path,
) -> None:
    alone = JobOutput(str(tmp_path / "alone"), OPTIONS, "jsonl")
    for number in alone.prepare(parts):
        alone.write(number, parts[number])
    spread = JobOutput(str(tmp_path / "spread"), OPTIONS, "jsonl")
    with Client(cluster) as client:
        workers = set(client.run(os.getpid).values())
        tallies = validate_parts(client, parts, spread)
        next(tallies)
        assert kill_whoever_writes(tmp_path / "spread") in workers
        list(tallies)
    found = rows(tmp_path / "spread")
    assert sorted({row["id"] for row in found}) == sorted(row["id"] for row in found)
    assert len(found) == DOCUMENTS
    assert found == rows(tmp_path / "alone")
    assert not list((tmp_path / "spread").glob(".*"))


def test_a_job_is_done_from_the_command_line_and_goes_on_where_it_was(
    cluster: LocalCluster,
    parts: list[InputSplit],
    tmp_path: Path,
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        module = [sys.executable, "-m", "peripety.scenario.batch.on_dask", *arguments]
        done = subprocess.run(module, capture_output=True, text=True, env=environment(tmp_path), check=False)
        return done.returncode, done.stderr

    job = [
        parts[0].source,
        str(tmp_path / "out"),
        "--scheduler",
        cluster.scheduler_address,
        "--format",
        "jsonl",
    ]
    good = sum(index % 7 > 0 for index in range(DOCUMENTS))
    assert run(*job) == (1, f"{good} of {DOCUMENTS} accepted in 1 parts\n")
    assert len(rows(tmp_path / "out")) == DOCUMENTS
    assert run(*job) == (0, "0 of 0 accepted in 0 parts; 1 parts were complete already\n")
