"""The script of the user's guide, with every official SDK as a client of the scripted LLM."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from peripety.llmsim import Simulator, load_script
from peripety.llmsim.server.runner import serve_in_thread
from support.repo.repository import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "test-with-llmsim.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow(reason="starts the official SDKs")
SCRIPT = re.compile(r"^```python\n(import ollama\n.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_official_sdk_is_answered() -> None:
    (script,) = SCRIPT.findall(GUIDE)
    assert len([line for line in script.splitlines() if line]) == 10
    scenario = load_script(ROOT / "examples" / "simulator" / "multi_turn.toml")
    with Simulator(scenario) as simulator, serve_in_thread(simulator) as server:
        script = script.replace("http://127.0.0.1:8080", server.url)
        ran = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ran.stdout, ran.returncode) == ("Please enter your username:\n" * 4, 0), ran.stderr
