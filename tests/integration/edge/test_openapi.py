"""The OpenAPI document, by which another program calls every route and checks each answer."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import pytest

from support.engine.specs import playable

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.edge import EdgeClient

pytestmark = pytest.mark.asyncio(loop_scope="package")

ENDLESS = r"(/events|/Watch\w+)$"
"""Streams that follow a session until it is deleted; other tests read them."""

CONFIGURATION = """
seed = 1

[parameters]
"path.session_id" = "{session_id}"
"body.session_id" = "{session_id}"
"body.scenario_id" = "{scenario_id}"

# The type of the body is checked first, for every path and method.
[checks]
unsupported_method.enabled = false

# The schema of a message has the types of its fields. The message documents what a call requires of them.
[[operations]]
include-path-regex = "^/rpc/"
checks.positive_data_acceptance.enabled = false
phases.coverage.enabled = false

# The body of one is a specification, the other has messages in it.
[[operations]]
include-path-regex = "^(/scenarios/[^/]*/compile|/sessions)$"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.slow(reason="sends about a thousand requests")
@pytest.mark.timeout(900)
async def test_every_route_keeps_to_the_document(edge: EdgeClient, tmp_path: Path) -> None:
    spec = json.loads(playable())
    status, compiled = await edge.post(f"/scenarios/{spec['id']}/compile", spec)
    assert status == 200, compiled
    status, session = await edge.post("/sessions", {"scenario_id": compiled["scenario_id"]})
    assert status == 201, session
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION.format(**session), encoding="utf-8")
    command = ["--config-file", str(configuration), "run", f"{edge.url}/openapi.json"]
    options = ["--phases", "coverage,fuzzing", "--max-examples", "3", "--request-timeout", "60", "--no-color"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from schemathesis.cli import schemathesis; schemathesis()",
        *command,
        *options,
        "--exclude-path-regex",
        ENDLESS,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()[-20_000:]
