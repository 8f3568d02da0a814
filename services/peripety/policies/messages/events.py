"""Compile events to protobuf; sequence numbers are added later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import Pending
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.gateway.messages.answers import spent_to_proto
from peripety.gateway.model import Spent
from peripety.policies.messages import parts, reports, stored
from peripety.policies.model import (
    AuditEntry,
    Failed,
    Progress,
    RulesWritten,
    ScenariosWritten,
    Verified,
)

if TYPE_CHECKING:
    from peripety.policies.cached import Event, Kept

__all__ = ["compile_response"]


def compile_response(
    event: Event | Pending[Kept],
) -> pb.CompilePolicyResponse | Pending[pb.CompilePolicyResponse]:
    """Convert a compile event; a pending write is converted after its commit."""
    return event.told(_compiled) if isinstance(event, Pending) else _told(event)


def _told(event: Event) -> pb.CompilePolicyResponse:
    response = pb.CompilePolicyResponse
    match event:
        case Progress():
            told = response(progress=_progress(event))
        case RulesWritten(document, findings):
            written = response.RulesWritten(document=document, findings=parts.findings(findings))
            told = response(rules_written=written)
        case ScenariosWritten():
            told = response(scenarios_written=_scenarios_written(event))
        case Verified():
            told = response(verified=_verified(event))
        case AuditEntry():
            told = response(decided=stored.audit_entry(event))
        case Failed():
            told = response(failed=_failed(event))
    return told


def _progress(event: Progress) -> pb.CompilePolicyResponse.Progress:
    return pb.CompilePolicyResponse.Progress(
        phase=pb.CompilePhase.Value(f"COMPILE_PHASE_{event.phase.name}"),
        round=event.round,
        message=event.message,
        fraction=event.fraction,
    )


def _scenarios_written(event: ScenariosWritten) -> pb.CompilePolicyResponse.ScenariosWritten:
    turn = None if event.turn is None else stored.turn(event.turn)
    return pb.CompilePolicyResponse.ScenariosWritten(scenarios=parts.scenarios(event.scenarios), turn=turn)


def _verified(event: Verified) -> pb.CompilePolicyResponse.Verified:
    failures = event.report.failures
    return pb.CompilePolicyResponse.Verified(
        round=event.round,
        passed=len(event.report.results) - len(failures),
        failed=len(failures),
        failures=reports.results(failures),
    )


def _failed(event: Failed) -> pb.CompilePolicyResponse.Failed:
    return pb.CompilePolicyResponse.Failed(
        findings=parts.findings(event.findings),
        document=event.document,
        scenarios=parts.scenarios(event.scenarios),
        verification=None if event.verification is None else reports.verification(event.verification),
        audit=map(stored.audit_entry, event.audit),
        usage=spent_to_proto(event.spent),
    )


def _compiled(kept: Kept) -> pb.CompilePolicyResponse:
    compiled = kept.policy.compiled
    # A cached result has no usage in this request.
    spent, turns = (Spent(), ()) if kept.from_cache else (compiled.spent, compiled.turns)
    return pb.CompilePolicyResponse(
        compiled=pb.CompilePolicyResponse.Compiled(
            policy=stored.policy(kept.policy),
            usage=spent_to_proto(spent),
            turns=map(stored.turn, turns),
            from_cache=kept.from_cache,
            findings=parts.findings(compiled.findings),
        )
    )
