"""Certificates at the command line: made in one process, checked in another."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.engine.specs import action, as_bytes, at_most
from support.repo.repository import ROOT
from support.scenario.batches import contest
from support.servers.processes import PERIPETY, environment, terminal

if TYPE_CHECKING:
    from pathlib import Path


SPEC = ROOT / "examples" / "scenario.json"
FEW = ("--persona", "greedy", "--max-runs", "64")


def peripety(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PERIPETY, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(home),
    )


@pytest.mark.slow(reason="starts a process for each command")
def test_a_certificate_is_right_in_another_process_until_it_is_forged(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    made = peripety(tmp_path, "certify", SPEC, *FEW, "--out", certificate)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("A reserve under strain: certified\n")
    checked = peripety(tmp_path, "certify", "--check", certificate, SPEC)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "the certificate matches\n", "")
    certificate.write_text(certificate.read_text().replace('"turn":', '"turn":1'))
    forged = peripety(tmp_path, "certify", "--check", certificate, SPEC)
    assert forged.returncode == 1
    assert "error CERTIFICATE_DIFFERS /personas/" in forged.stdout


@pytest.mark.slow(reason="starts several processes")
def test_misuse_is_told_in_a_sentence(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(SPEC.read_text().replace('"seed": 7', '"seed": 8'))
    certificate = tmp_path / "certificate.json"
    assert peripety(tmp_path, "certify", SPEC, *FEW, "--out", certificate).returncode == 0
    refused = peripety(tmp_path, "certify", "--check", certificate, other)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: The certificate is about the specification ")
    absent = peripety(tmp_path, "certify", tmp_path / "absent.json")
    assert (absent.returncode, "Traceback" in absent.stderr) == (2, False)


@pytest.mark.slow(reason="waits for a long command")
def test_whoever_waits_sees_how_far_it_is_and_can_end_it(tmp_path: Path) -> None:
    # To look ahead from one run with so many choices takes a quarter of a minute, and cannot be stopped.
    far = [at_most("far", "state.a", -1_000), at_most("farther", "state.a", -2_000)]
    many = [action(f"a{number}", []) for number in range(500)]
    slow = tmp_path / "slow.json"
    slow.write_bytes(as_bytes(contest(actions=many, loss_conditions=far, win_conditions=[], horizon=100)))
    options = ("--persona", "planner", "--max-runs", "64")
    with terminal([*PERIPETY, "certify", str(slow), *options], environment(tmp_path)) as person:
        person.wait_for("25%", seconds=60)
        person.process.send_signal(signal.SIGINT)
        person.wait_for("interrupted", seconds=10)
        assert person.process.wait(timeout=10) == 130
