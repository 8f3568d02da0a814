"""Events, scenarios and rule graphs to protobuf; the caller sets sequence numbers."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.gateway.pb.responses import spent_to_proto
from peripety.rpc.messages import copy_fields
from peripety.scenario.balance.balancer import BalanceFailed, BalanceReached
from peripety.scenario.pb import requests
from peripety.scenario.types import (
    AmendmentCompleted,
    AmendmentFailed,
    ChangeProposed,
    DraftProposed,
    DraftRevised,
    NumbersAdjusted,
    Progress,
    RegistrationFailed,
    Scenario,
    ScenarioRegistered,
    SpecGenerated,
    SpecGenerationFailed,
    ValidationFailed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.core.validation import Page
    from peripety.gateway.types.response import UsageTotal
    from peripety.scenario.action_tools import ScenarioTool
    from peripety.scenario.balance.balancer import BalanceEvent
    from peripety.scenario.rule_graph.graph import Inspection
    from peripety.scenario.types import (
        AmendEvent,
        GenerationEvent,
        RegistrationEvent,
        ScenarioRecord,
        ScenarioSummary,
    )


def scenario_to_proto(record: ScenarioRecord) -> pb.CompiledScenario:
    """Convert a stored scenario."""
    stored = record.scenario
    return copy_fields(
        pb.CompiledScenario,
        stored,
        spec=stored.document,
        dry_run=requests.report_to_proto(record.dry_run),
        edits=record.edits,
        findings=requests.findings_to_proto(record.findings).findings,
        certificate_hash=record.certificate_hash,
    )


def summaries_to_proto(page: Page[ScenarioSummary]) -> list[pb.ScenarioSummary]:
    """Convert a page of stored versions."""
    return [copy_fields(pb.ScenarioSummary, stored) for stored in page.items]


def scenario_from_proto(message: pb.CompiledScenario) -> Scenario:
    """Convert a stored scenario from its message."""
    return Scenario(
        scenario_id=message.scenario_id,
        name=message.name,
        spec_hash=message.spec_hash,
        document=message.spec,
        create_time=message.create_time.ToDatetime(UTC),
    )


def tools_to_proto(offered: Iterable[ScenarioTool], spec_hash: str) -> pb.GetScenarioToolsResponse:
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


def generation_event_to_proto(event: GenerationEvent) -> pb.GenerateScenarioResponse:
    """Convert an event of a generation; the caller sets the sequence number."""
    response = pb.GenerateScenarioResponse
    match event:
        case Progress():
            told = response(progress=requests.progress_to_proto(event))
        case DraftProposed(document, attempt, spent):
            told = response(
                draft=response.Draft(spec=document, attempt=attempt, usage=_known_usage_to_proto(spent)),
            )
        case ValidationFailed(findings):
            told = response(findings=requests.findings_to_proto(findings))
        case DraftRevised():
            told = response(repaired=_revision_to_proto(event))
        case NumbersAdjusted():
            told = response(numbers_adjusted=requests.numbers_adjusted_to_proto(event))
        case SpecGenerated():
            told = response(completed=_completion_to_proto(event))
        case SpecGenerationFailed():
            told = response(rejected=_failure_to_proto(event))
    return told


def _revision_to_proto(event: DraftRevised) -> pb.GenerateScenarioResponse.Repaired:
    usage = _known_usage_to_proto(event.spent)
    return copy_fields(pb.GenerateScenarioResponse.Repaired, event, spec=event.document, usage=usage)


def _known_usage_to_proto(spent: UsageTotal | None) -> common.ModelUsage | None:
    return None if spent is None else spent_to_proto(spent)


def _failure_to_proto(event: SpecGenerationFailed) -> pb.GenerateScenarioResponse.Rejected:
    return copy_fields(
        pb.GenerateScenarioResponse.Rejected,
        event,
        findings=requests.findings_to_proto(event.findings),
        usage=spent_to_proto(event.spent),
        spec=event.document,
    )


def _completion_to_proto(event: SpecGenerated) -> pb.GenerateScenarioResponse.Completed:
    return copy_fields(
        pb.GenerateScenarioResponse.Completed,
        event,
        spec=event.document,
        findings=requests.findings_to_proto(event.findings).findings,
        usage=spent_to_proto(event.spent),
        authored_without_model=event.without_model,
        certificate=requests.certificate_to_proto(event.certificate) if event.certificate else None,
    )


def registration_event_to_proto(event: RegistrationEvent) -> pb.CompileScenarioResponse:
    """Convert an event of a registration; the caller sets the sequence number."""
    response = pb.CompileScenarioResponse
    match event:
        case Progress():
            return response(progress=requests.progress_to_proto(event))
        case NumbersAdjusted():
            before = requests.report_to_proto(event.before)
            return response(repaired=copy_fields(response.Repaired, event, before=before))
        case ScenarioRegistered(record):
            return response(compiled=scenario_to_proto(record))
        case RegistrationFailed(findings, dry_run):
            report = requests.report_to_proto(dry_run) if dry_run else None
            return response(
                rejected=response.Rejected(findings=requests.findings_to_proto(findings), dry_run=report),
            )


def amendment_event_to_proto(event: AmendEvent) -> pb.AmendScenarioResponse:
    """Convert an event of an amendment; the caller sets the sequence number."""
    response = pb.AmendScenarioResponse
    match event:
        case Progress():
            told = response(progress=requests.progress_to_proto(event))
        case ChangeProposed():
            told = response(proposed=copy_fields(pb.ProposedEdits, event, usage=spent_to_proto(event.spent)))
        case ValidationFailed(findings):
            told = response(findings=requests.findings_to_proto(findings))
        case NumbersAdjusted():
            told = response(numbers_adjusted=requests.numbers_adjusted_to_proto(event))
        case AmendmentCompleted():
            usage, scenario = spent_to_proto(event.spent), scenario_to_proto(event.record)
            told = response(amended=copy_fields(response.Amended, event, scenario=scenario, usage=usage))
        case AmendmentFailed(findings, spent):
            refused = response.Rejected(
                findings=requests.findings_to_proto(findings),
                usage=spent_to_proto(spent),
            )
            told = response(rejected=refused)
    return told


def balance_event_to_proto(event: BalanceEvent) -> pb.BalanceScenarioResponse:
    """Convert an event of a balancing; the caller sets the sequence number."""
    response = pb.BalanceScenarioResponse
    match event:
        case Progress():
            return response(progress=requests.progress_to_proto(event))
        case BalanceReached():
            balanced = copy_fields(
                response.Balanced,
                event,
                spec=event.document,
                before=requests.report_to_proto(event.before),
                after=requests.report_to_proto(event.after),
            )
            return response(balanced=balanced)
        case BalanceFailed(findings, closest):
            report = requests.report_to_proto(closest) if closest else None
            return response(
                rejected=response.Rejected(findings=requests.findings_to_proto(findings), closest=report),
            )


def inspection_to_proto(inspection: Inspection) -> pb.InspectScenarioResponse:
    """Convert a rule graph with its activity."""
    graph = inspection.graph
    nodes = [
        copy_fields(pb.RuleNode, node, heat=inspection.activity.get(node.node_id, 0)) for node in graph.nodes
    ]
    edges = [
        copy_fields(pb.RuleEdge, edge, from_node_id=edge.source, to_node_id=edge.target)
        for edge in graph.edges
    ]
    report = inspection.report
    return pb.InspectScenarioResponse(
        nodes=nodes,
        edges=edges,
        dry_run=None if report is None else requests.report_to_proto(report),
    )
