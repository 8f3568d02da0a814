"""Findings of a document are the same list in the terminal, for a client and in a failed call."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.api.scenario.v1 import scenario_pb2
from peripety.errors import InvalidArgumentError
from peripety.rpc.status import finding_from_proto
from support.engine.specs import action, spec
from support.servers.processes import PERIPETY, environment

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.errors import Finding
    from support.servers.apps import Api


WRONG = json.dumps(
    spec(
        actions=[
            action("a", [{"op": "inc", "path": "state.nowhere", "value": 1}]),
            action("a", [{"op": "set", "path": "state.a", "value": {"+": [1, 2]}}]),
        ],
    ),
).encode()


@pytest.fixture
def findings() -> list[Finding]:
    found = engine.validate(WRONG)
    assert {finding.code for finding in found} == {"DUPLICATE_ID", "UNKNOWN_PATH", "CODE_IN_VALUE"}
    assert all(finding.remedy for finding in found)
    return found


async def test_a_result_lists_them_with_their_remedies(api: Api, findings: list[Finding]) -> None:
    told = (await api.compile(WRONG))[-1].rejected.findings.findings
    assert [finding_from_proto(finding) for finding in told] == findings
    assert [finding.remedy for finding in told] == [finding.remedy for finding in findings]


async def test_a_call_that_fails_because_of_the_document_lists_them(
    api: Api,
    findings: list[Finding],
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        await api.scenarios.InspectScenario(scenario_pb2.InspectScenarioRequest(spec=WRONG))
    assert list(raised.value.violations) == [finding.violation for finding in findings]


def test_the_command_line_lists_them(tmp_path: Path, findings: list[Finding]) -> None:
    command = [*PERIPETY, "validate", "-", "--json"]
    done = subprocess.run(command, input=WRONG, capture_output=True, check=False, env=environment(tmp_path))
    assert done.returncode == 1
    told = json.loads(done.stdout)["findings"]
    assert [(f["code"], f["path"], f["message"], f["remedy"]) for f in told] == [
        (finding.code, finding.path, finding.message, finding.remedy) for finding in findings
    ]
