"""From a description to a stored scenario and its next version, each step a process of its own."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess


def peripety(home: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(home),
    )


@pytest.mark.slow(reason="starts a process for each command")
def test_a_description_becomes_a_stored_scenario_that_can_be_changed(tmp_path: Path) -> None:
    written = peripety(tmp_path, "generate", "--description", "alpha wanes", "--level", "dry-run")
    stored = peripety(tmp_path, "compile", "-", given=written.stdout)
    assert stored.returncode == 0, stored.stderr
    scenario_id = stored.stdout.split("stored as ")[1].split(",")[0]
    changed = peripety(tmp_path, "amend", scenario_id, "make it slightly longer")
    assert changed.returncode == 0, changed.stderr
    assert "    horizon " in changed.stdout
    shown = peripety(tmp_path, "scenarios", "show", scenario_id, "--json").stdout
    assert json.loads(shown)["horizon"] > json.loads(written.stdout)["horizon"]
    refused = peripety(tmp_path, "amend", scenario_id, "paint it blue")
    assert (refused.returncode, "AMENDMENT_NOT_UNDERSTOOD" in refused.stderr) == (1, True)


@pytest.mark.slow(reason="starts a process for each command")
def test_what_is_stored_elsewhere_is_reached_as_well(tmp_path: Path, server: ServerProcess) -> None:
    at = ("--server", server.address)
    written = peripety(tmp_path, "generate", "--description", "beta waits", "--level", "dry-run").stdout
    stored = json.loads(peripety(tmp_path, "compile", "-", "--json", *at, given=written).stdout)
    listed = peripety(tmp_path, "scenarios", "list", "--json", *at).stdout.splitlines()
    assert stored["scenario_id"] in {json.loads(line)["scenario_id"] for line in listed}
    assert peripety(tmp_path, "scenarios", "list").stdout == ""
    gone = peripety(tmp_path, "scenarios", "delete", stored["scenario_id"], *at)
    assert gone.returncode == 0, gone.stderr
    again = peripety(tmp_path, "scenarios", "delete", stored["scenario_id"], *at)
    assert (again.returncode, "SCENARIO_NOT_FOUND" in again.stderr) == (1, True)
