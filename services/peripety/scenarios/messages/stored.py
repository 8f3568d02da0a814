"""Stored scenarios and their tools as protobuf messages."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.scenarios.messages import parts
from peripety.scenarios.model import CompiledScenario

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.pages import Page
    from peripety.scenarios.model import ScenarioRecord, ScenarioSummary
    from peripety.scenarios.tools import ScenarioTool

__all__ = ["compiled_scenario", "scenario", "summaries", "tools"]


def scenario(record: ScenarioRecord) -> pb.CompiledScenario:
    """Convert a stored scenario."""
    stored = record.scenario
    compiled = pb.CompiledScenario(
        scenario_id=stored.scenario_id,
        name=stored.name,
        spec_hash=stored.spec_hash,
        spec=stored.document,
        dry_run=parts.report(record.dry_run),
        edits=parts.number_edits(record.edits),
        findings=parts.findings(record.findings).findings,
        certificate_hash=record.certificate_hash or "",
    )
    compiled.create_time.FromDatetime(stored.create_time)
    return compiled


def summaries(page: Page[ScenarioSummary]) -> list[pb.ScenarioSummary]:
    """Convert a page of stored versions."""
    told = []
    for stored in page.items:
        summary = pb.ScenarioSummary(
            scenario_id=stored.scenario_id,
            name=stored.name,
            spec_hash=stored.spec_hash,
            fail_rate=stored.fail_rate,
            certificate_hash=stored.certificate_hash or "",
        )
        summary.create_time.FromDatetime(stored.create_time)
        told.append(summary)
    return told


def compiled_scenario(message: pb.CompiledScenario) -> CompiledScenario:
    """Convert a stored scenario from its message."""
    return CompiledScenario(
        scenario_id=message.scenario_id,
        name=message.name,
        spec_hash=message.spec_hash,
        document=message.spec,
        create_time=message.create_time.ToDatetime(UTC),
    )


def tools(offered: Iterable[ScenarioTool], spec_hash: str) -> pb.GetScenarioToolsResponse:
    """Convert the tools of a version of a scenario."""
    response = pb.GetScenarioToolsResponse(spec_hash=spec_hash)
    for one in offered:
        response.tools.add(
            action_id=one.action_id or "",
            name=one.tool.name,
            description=one.tool.description,
            input_schema=json.dumps(one.tool.input_schema, ensure_ascii=False).encode(),
        )
    return response
