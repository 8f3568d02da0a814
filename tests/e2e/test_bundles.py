"""Sessions as files: played in one process, verified in another on the other core, played on from a third."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.engine.backends import backend_named
from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from pathlib import Path


def peripety(home: Path, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [*PERIPETY, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(home, **settings),
    )


def session_in(value: Any) -> str | None:
    """The id of a session that is named somewhere in a message."""
    if not isinstance(value, dict):
        return None
    named = value.get("session_id")
    return named or next(filter(None, map(session_in, value.values())), None)


@pytest.mark.slow(reason="starts a process for each case")
def test_a_session_goes_from_process_to_process_as_a_file(tmp_path: Path) -> None:
    backend_named("native")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    bundle = tmp_path / "session.jsonl"
    played = peripety(here, "play", "--auto", "--turns", "3", "--json", "--description", "a long cold night")
    assert played.returncode == 0, played.stderr
    session_id = session_in(json.loads(played.stdout.splitlines()[-1]))
    assert session_id is not None
    exported = peripety(here, "sessions", "export", session_id, "--out", bundle)
    assert (exported.returncode, exported.stderr) == (0, "")

    for core in ("native", "python"):
        right = peripety(there, "replay", bundle, PERIPETY_SIMCORE=core)
        assert (right.returncode, right.stderr) == (0, "")
        assert f"3 of 3 turns replayed on the {core} core, 0 of them differ" in right.stdout

    imported = peripety(there, "sessions", "import", bundle, "--json")
    assert imported.returncode == 0, imported.stderr
    other_id = json.loads(imported.stdout)["session_id"]
    again = peripety(there, "sessions", "export", other_id)
    assert again.stdout.encode() == bundle.read_bytes()

    forged = tmp_path / "forged.jsonl"
    forged.write_bytes(bundle.read_bytes().replace(b'"before":', b'"before":1', 1))
    wrong = peripety(there, "replay", forged)
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("the bundle is invalid\n")
    refused = peripety(there, "sessions", "import", forged)
    assert refused.returncode != 0
    assert "(BUNDLE_INVALID)" in refused.stderr
    assert peripety(there, "replay", tmp_path / "none").returncode == 2
