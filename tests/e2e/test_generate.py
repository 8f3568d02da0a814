"""Specifications at the command line: written in one process, judged in another."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.errors import get_remedy
from support.engine.specs import playable
from support.servers.processes import PERIPETY, environment, terminal

if TYPE_CHECKING:
    from pathlib import Path


ABOUT = "The well is nearly dry, and two people know where else to dig."


def peripety(home: Path, *arguments: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [*PERIPETY, *arguments]
    return subprocess.run(
        command,
        input=said,
        capture_output=True,
        check=False,
        timeout=100,
        env=environment(home),
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[bytes]:
    options = ("--description", ABOUT, "--level", "dry-run", "--seed", "7")
    return peripety(tmp_path_factory.mktemp("written"), "generate", *options)


def test_what_goes_into_a_pipe_is_one_specification(written: subprocess.CompletedProcess[bytes]) -> None:
    assert (written.returncode, written.stderr) == (0, b"")
    assert engine.validate(written.stdout) == []
    assert engine.canonicalize(json.loads(written.stdout)) + b"\n" == written.stdout


@pytest.mark.slow_after(1, reason="starts a process for each case")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("certify", "-", "--json", "--max-runs", "64", "--persona", "greedy"), b'"verdict":"certified"'),
        (("validate", "-"), b"-: valid"),
        (("dry-run", "-", "--json"), b'"fail_rate":'),
        (("balance", "-", "--target", "0-100", "--json"), b'"balanced":true'),
    ],
)
def test_the_next_command_takes_it_from_the_pipe(
    written: subprocess.CompletedProcess[bytes],
    tmp_path: Path,
    command: tuple[str, ...],
    says: bytes,
) -> None:
    taken = peripety(tmp_path, *command, said=written.stdout)
    assert taken.returncode == 0, taken.stderr
    assert says in taken.stdout


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize(
    "command",
    [("certify", "-"), ("dry-run", "-"), ("balance", "-", "--target", "30-40")],
)
def test_a_command_that_gets_nothing_says_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    empty = peripety(tmp_path, *command)
    assert (empty.returncode, empty.stdout) == (2, b"")
    assert empty.stderr.startswith(b"error: standard input is empty")


@pytest.mark.slow(reason="starts a process at a terminal")
def test_at_a_terminal_it_is_told_what_was_written(tmp_path: Path) -> None:
    command = [*PERIPETY, "generate", "--description", ABOUT, "--level", "static"]
    with terminal(command, environment(tmp_path)) as person:
        person.wait_for("authoring")
        person.wait_for("actions")
        person.wait_for("written by rules, without a language model")
        assert person.process.wait(timeout=20) == 0
    assert '"random_events"' not in person.screen


@pytest.mark.slow(reason="starts a process")
def test_a_document_that_is_refused_says_why_and_what_to_do(tmp_path: Path) -> None:
    refused = peripety(tmp_path, "certify", "-", said=b'{"a": 1')
    assert refused.returncode == 1
    first, finding, fix = refused.stderr.decode().splitlines()
    assert first.startswith("error: ")
    assert finding.startswith("  error INVALID_JSON /: ")
    assert fix.startswith("    fix: ")


@pytest.mark.slow(reason="starts a server and a process")
def test_a_model_is_told_what_is_wrong_and_what_its_answers_cost_is_shown(tmp_path: Path) -> None:
    wrong = {**json.loads(playable()), "extra": 1}
    answers = [
        {"pattern": {"type": "any"}, "response": json.dumps(answer), "max_matches": 1}
        for answer in (wrong, {"removed": ["/extra"]})
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"responses": answers, "default_response": "no", "keys": ["k"]}))
    home = environment(tmp_path, MODEL_PROVIDER="scripted", PERIPETY_SCRIPT=str(script))
    out = tmp_path / "a.json"
    command = [*PERIPETY, "generate", "--description", "x", "--level", "static", "--out", str(out)]

    told = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, env=home).stdout
    assert re.search(r"^  answer 1: 1 call · [\d,]+ in \(0 cached, 0%\)", told, re.MULTILINE)
    assert "    error UNKNOWN_KEY /extra: " in told
    assert f"      fix: {get_remedy('UNKNOWN_KEY')}\n" in told
    assert re.search(
        r"^  repaired by answer 2: 1 call · [\d,]+ in \([1-9][\d,]+ cached, ",
        told,
        re.MULTILINE,
    )
    assert "extra" not in json.loads(out.read_text())
