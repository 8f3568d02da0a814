"""Wrong uses of `peripety agent`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from peripety.cli.app import app

EXAMPLE = "agent.toml"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rerun-phase", "a"], "--rerun-phase needs --resume"),
        (["--following"], "need --rerun-phase"),
        (["--system", "s"], "need --rerun-phase"),
    ],
)
def test_options_that_need_others_say_so(options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["agent", "run", EXAMPLE, *options])
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
