"""Events, scenarios, graphs to proto.

Conversion between scenario types and protobuf messages.

Events of scenario operations as protobuf messages; the caller sets the sequence number of each.

Rule graphs as protobuf messages.

Stored scenarios and their tools as protobuf messages.
"""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.gateway.pb.responses import spent_to_proto
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
    compiled = pb.CompiledScenario(
        scenario_id=stored.scenario_id,
        name=stored.name,
        spec_hash=stored.spec_hash,
        spec=stored.document,
        dry_run=requests.report_to_proto(record.dry_run),
        edits=requests.number_edits_to_proto(record.edits),
        findings=requests.findings_to_proto(record.findings).findings,
        certificate_hash=record.certificate_hash or "",
    )
    compiled.create_time.FromDatetime(stored.create_time)
    return compiled


def summaries_to_proto(page: Page[ScenarioSummary]) -> list[pb.ScenarioSummary]:
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
    return pb.GenerateScenarioResponse.Repaired(
        spec=event.document,
        attempt=event.attempt,
        edits=[requests.rule_edit_to_proto(edit) for edit in event.edits],
        usage=_known_usage_to_proto(event.spent),
    )


def _known_usage_to_proto(spent: UsageTotal | None) -> common.ModelUsage | None:
    return None if spent is None else spent_to_proto(spent)


def _failure_to_proto(event: SpecGenerationFailed) -> pb.GenerateScenarioResponse.Rejected:
    return pb.GenerateScenarioResponse.Rejected(
        findings=requests.findings_to_proto(event.findings),
        attempts=event.attempts,
        usage=spent_to_proto(event.spent),
    )


def _completion_to_proto(event: SpecGenerated) -> pb.GenerateScenarioResponse.Completed:
    return pb.GenerateScenarioResponse.Completed(
        spec=event.document,
        findings=requests.findings_to_proto(event.findings).findings,
        attempts=event.attempts,
        usage=spent_to_proto(event.spent),
        authored_without_model=event.without_model,
        model=event.model,
        from_cache=event.from_cache,
        certificate=requests.certificate_to_proto(event.certificate) if event.certificate else None,
    )


def registration_event_to_proto(event: RegistrationEvent) -> pb.CompileScenarioResponse:
    """Convert an event of a registration; the caller sets the sequence number."""
    response = pb.CompileScenarioResponse
    match event:
        case Progress():
            return response(progress=requests.progress_to_proto(event))
        case NumbersAdjusted(edits, before):
            return response(
                repaired=response.Repaired(
                    edits=requests.number_edits_to_proto(edits),
                    before=requests.report_to_proto(before),
                ),
            )
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
        case ChangeProposed(edits, attempt, spent):
            proposed = pb.ProposedEdits(
                edits=map(requests.rule_edit_to_proto, edits),
                attempt=attempt,
                usage=spent_to_proto(spent),
            )
            told = response(proposed=proposed)
        case ValidationFailed(findings):
            told = response(findings=requests.findings_to_proto(findings))
        case NumbersAdjusted():
            told = response(numbers_adjusted=requests.numbers_adjusted_to_proto(event))
        case AmendmentCompleted(record, edits, spent):
            amended = response.Amended(
                scenario=scenario_to_proto(record),
                edits=map(requests.rule_edit_to_proto, edits),
                usage=spent_to_proto(spent),
            )
            told = response(amended=amended)
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
        case BalanceReached(document, edits, before, after):
            balanced = response.Balanced(
                spec=document,
                edits=requests.number_edits_to_proto(edits),
                before=requests.report_to_proto(before),
                after=requests.report_to_proto(after),
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
        pb.RuleNode(
            node_id=node.node_id,
            kind=pb.RuleNodeKind.Value(f"RULE_NODE_KIND_{node.kind.name}"),
            label=node.label,
            heat=inspection.activity.get(node.node_id, 0),
        )
        for node in graph.nodes
    ]
    edges = [
        pb.RuleEdge(
            from_node_id=edge.source,
            to_node_id=edge.target,
            kind=pb.RuleEdgeKind.Value(f"RULE_EDGE_KIND_{edge.kind.name}"),
        )
        for edge in graph.edges
    ]
    report = inspection.report
    return pb.InspectScenarioResponse(
        nodes=nodes,
        edges=edges,
        dry_run=None if report is None else requests.report_to_proto(report),
    )
