"""Scenarios that are kept."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.scenarios.messages import parts
from peripety.scenarios.model import CompiledScenario

if TYPE_CHECKING:
    from peripety.pages import Page
    from peripety.scenarios.model import ScenarioRecord, ScenarioSummary

__all__ = ["compiled_scenario", "scenario", "summaries"]


def scenario(record: ScenarioRecord) -> pb.CompiledScenario:
    """A stored scenario."""
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
    """The stored versions of a page."""
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
    """What is played of a stored scenario."""
    return CompiledScenario(
        scenario_id=message.scenario_id,
        name=message.name,
        spec_hash=message.spec_hash,
        document=message.spec,
        create_time=message.create_time.ToDatetime(UTC),
    )
