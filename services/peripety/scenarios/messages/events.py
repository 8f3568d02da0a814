"""Events of scenario operations as protobuf messages; the caller sets the sequence number of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.gateway.messages.answers import spent_to_proto
from peripety.scenarios.amending.model import Amended, NotAmended, Proposed
from peripety.scenarios.balancing.model import Balanced, NotBalanced
from peripety.scenarios.messages import certificates, parts, stored
from peripety.scenarios.model import (
    Compiled,
    Completed,
    Draft,
    FoundWrong,
    NotCompiled,
    NotGenerated,
    NumbersMoved,
    Progress,
    Rewritten,
)

if TYPE_CHECKING:
    from peripety.api.common.v1 import common_pb2 as common
    from peripety.gateway.model import Spent
    from peripety.scenarios.amending.model import AmendEvent
    from peripety.scenarios.balancing.model import BalanceEvent
    from peripety.scenarios.model import CompileEvent, GenerationEvent

__all__ = ["amend_response", "balance_response", "compile_response", "generation_response"]


def generation_response(event: GenerationEvent) -> pb.GenerateScenarioResponse:
    """Convert an event of a generation; the caller sets the sequence number."""
    response = pb.GenerateScenarioResponse
    match event:
        case Progress():
            told = response(progress=parts.progress(event))
        case Draft(document, attempt, spent):
            told = response(draft=response.Draft(spec=document, attempt=attempt, usage=_known(spent)))
        case FoundWrong(findings):
            told = response(findings=parts.findings(findings))
        case Rewritten():
            told = response(repaired=_repaired(event))
        case NumbersMoved():
            told = response(numbers_adjusted=parts.rebalanced(event))
        case Completed():
            told = response(completed=_completed(event))
        case NotGenerated():
            told = response(rejected=_rejected(event))
    return told


def _repaired(event: Rewritten) -> pb.GenerateScenarioResponse.Repaired:
    return pb.GenerateScenarioResponse.Repaired(
        spec=event.document,
        attempt=event.attempt,
        edits=[parts.rule_edit(edit) for edit in event.edits],
        usage=_known(event.spent),
    )


def _known(spent: Spent | None) -> common.ModelUsage | None:
    return None if spent is None else spent_to_proto(spent)


def _rejected(event: NotGenerated) -> pb.GenerateScenarioResponse.Rejected:
    return pb.GenerateScenarioResponse.Rejected(
        findings=parts.findings(event.findings),
        attempts=event.attempts,
        usage=spent_to_proto(event.spent),
    )


def _completed(event: Completed) -> pb.GenerateScenarioResponse.Completed:
    return pb.GenerateScenarioResponse.Completed(
        spec=event.document,
        findings=parts.findings(event.findings).findings,
        attempts=event.attempts,
        usage=spent_to_proto(event.spent),
        authored_without_model=event.without_model,
        model=event.model,
        from_cache=event.from_cache,
        certificate=certificates.certificate(event.certificate) if event.certificate else None,
    )


def compile_response(event: CompileEvent) -> pb.CompileScenarioResponse:
    """Convert an event of a registration; the caller sets the sequence number."""
    response = pb.CompileScenarioResponse
    match event:
        case Progress():
            return response(progress=parts.progress(event))
        case NumbersMoved(edits, before):
            return response(
                repaired=response.Repaired(edits=parts.number_edits(edits), before=parts.report(before))
            )
        case Compiled(record):
            return response(compiled=stored.scenario(record))
        case NotCompiled(findings, dry_run):
            report = parts.report(dry_run) if dry_run else None
            return response(rejected=response.Rejected(findings=parts.findings(findings), dry_run=report))


def amend_response(event: AmendEvent) -> pb.AmendScenarioResponse:
    """Convert an event of an amendment; the caller sets the sequence number."""
    response = pb.AmendScenarioResponse
    match event:
        case Progress():
            told = response(progress=parts.progress(event))
        case Proposed(edits, attempt, spent):
            proposed = pb.ProposedEdits(
                edits=map(parts.rule_edit, edits), attempt=attempt, usage=spent_to_proto(spent)
            )
            told = response(proposed=proposed)
        case FoundWrong(findings):
            told = response(findings=parts.findings(findings))
        case NumbersMoved():
            told = response(numbers_adjusted=parts.rebalanced(event))
        case Amended(record, edits, spent):
            amended = response.Amended(
                scenario=stored.scenario(record),
                edits=map(parts.rule_edit, edits),
                usage=spent_to_proto(spent),
            )
            told = response(amended=amended)
        case NotAmended(findings, spent):
            refused = response.Rejected(findings=parts.findings(findings), usage=spent_to_proto(spent))
            told = response(rejected=refused)
    return told


def balance_response(event: BalanceEvent) -> pb.BalanceScenarioResponse:
    """Convert an event of a balancing; the caller sets the sequence number."""
    response = pb.BalanceScenarioResponse
    match event:
        case Progress():
            return response(progress=parts.progress(event))
        case Balanced(document, edits, before, after):
            balanced = response.Balanced(
                spec=document,
                edits=parts.number_edits(edits),
                before=parts.report(before),
                after=parts.report(after),
            )
            return response(balanced=balanced)
        case NotBalanced(findings, closest):
            report = parts.report(closest) if closest else None
            return response(rejected=response.Rejected(findings=parts.findings(findings), closest=report))
