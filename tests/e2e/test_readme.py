"""The example program of the README runs unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from support.repo.repository import ROOT
from support.servers.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.processes import ServerProcess


def test_the_client_in_the_readme_hears_a_scenario_being_written(
    server: ServerProcess,
    tmp_path: Path,
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert "127.0.0.1:50051" in program
    done = subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:50051", server.address)],
        check=True,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
    )
    assert done.stdout.splitlines()[-1].endswith(" completed")
